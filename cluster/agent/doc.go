// Package agent streams what engines hold to the nodes of a cluster, from beside
// the engines: where their event sockets can't be reached from the nodes, or should
// not be.
//
// # Data
//
// An Agent has a Mirror for each backend and rank that it was configured for. A
// feed tells the Mirror what the engine says (Store, Remove, Reset, SetLive, as a
// source of the precise index); the Mirror keeps each block with its tokens, parent
// and tiers, in an order in which parents come before their children. A block that
// is gone stays, as a ghost, while children of it are there: a node that is new
// needs it to know what they are.
//
// For each block the Mirror knows what the engine holds and what the node was told.
// Where the two differ the block waits in a queue to be told. That is all there is:
// a new stream has been told nothing, so the whole waits, in order; a change that
// is undone before it was told costs nothing; there is no log of changes that
// could overflow.
//
// # The stream
//
// An agent is linked with one node at a time, any one: nodes tell each other. It
// offers its sources, the node answers which it wants, and these are told in
// numbered parts, from the beginning. The node asks again after a gap. At most
// 256 KiB a source are under way unacknowledged. What the node was told is
// forgotten there when the link ends.
//
// # Who owns what
//
// Run owns the link and, while it is up, one goroutine that sends. Mirrors may be
// fed by any goroutine, one at a time each; a Mirror's lock is held for one event,
// one part, or once for the whole when a stream begins.
//
// # Bounds
//
// All Mirrors together hold at most Config.MaxBytes: beyond, blocks are not taken,
// and Status says so. Blocks of more than 16,384 tokens, and those with an adapter's
// name or a salt of more than 512 bytes, are known by name only.
//
// # Credentials
//
// A node lets in the agents of its credentials file (Credentials), each of which may
// describe the backends that stand there and no other.
package agent
