// Package link connects this node with each of its peers: one framed TCP
// connection a pair, three lanes, heartbeats and a lease.
//
// A frame is a length (u32, little endian, of what follows, at most 1 MiB), a
// kind (u8) and a body. Kinds from 0xF0 on are the link's own; all others go to
// the Handler as they are, which skips those that it does not know. That is how
// a newer node may speak to an older one.
//
// A handshake is hello, hello and verdict, verdict: the dialler speaks first, so
// that the listening side tells nothing to whoever does not know how to ask. Both
// sides check the other's hello; a refusal carries its reason to the other side,
// and a link is up only where both agreed.
//
// An agent dials as a node does, says so in its hello, and proves that it has the
// token of its name: an HMAC over a nonce of either side and, under TLS, what only
// the two ends of the connection know. The node proves the same to the agent, so
// that nobody streams to a node that does not know the token. Then it is a link
// like any other, but its frames go to Config.Agents, and it is no peer. Call is
// the agent's side.
//
// Ownership: Links.Run owns all goroutines and returns when they have ended. A
// link has three: a reader, which calls the Handler; a writer, which writes what
// could not be written at once; a keeper, which sends pings and ends the link
// with its lease. One goroutine a target dials, if this side is the one to dial;
// one accepts.
//
// What is bounded: each lane's queue in bytes (beyond it Send says false and the
// frame is dropped), a frame (1 MiB), connections whose hello has not come yet
// (in all and for each remote host), links of nodes that membership does not
// know (64, a few seconds each), agents (256), remembered log lines. Every read waits no longer
// than the lease, every write no longer than WriteTimeout, a handshake no longer
// than HandshakeTimeout.
package link
