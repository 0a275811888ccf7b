// Package wire encodes what the nodes of a cluster tell each other over their
// links: the bodies of frames. It keeps no state and starts nothing.
//
// Numbers are little-endian, counts and amounts are unsigned varints. A body is
// read front to back; what follows the part that this version knows is left
// alone, so a later version may append. A body that ends too early, or counts
// more than it can hold, is malformed: reading says so and allocates nothing
// beyond a small multiple of the body's size.
//
// Backends are named by the 64-bit key of their id, never by slot: slots are
// each node's own.
package wire
