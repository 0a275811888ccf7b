// Package ring decides which node owns which backend, by rendezvous hashing over
// the names of the live nodes. It is a pure function of that set: nodes which see
// the same members agree without a word, and there is no table, no seed and no
// number of replicas to agree on.
//
//	Key(id)       = the first eight bytes of SHA-256(id), big-endian
//	score(k, n)   = Mix(k XOR Key(n))
//	owner of k    = the name with the greatest score; of equals, the least name
//
// Mix is the output function of SplitMix64. A node is its name, not its address
// or its boot, so that one which restarts takes its own backends back. When a node
// comes, the backends that move are those it wins, about one in N; when one goes,
// only its own move.
//
// The formulas are part of the protocol: nodes of different releases run them side
// by side. They never change.
//
// A Ring never changes either, so any goroutine may use it; it takes about 24 bytes
// and the name for each node, and a lookup is one pass over the nodes.
package ring
