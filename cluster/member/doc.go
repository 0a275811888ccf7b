// Package member is who belongs to the cluster: membership by gossip on
// hashicorp/memberlist, and small facts that ride along.
//
// # Data
//
// The roster lists every node known, the dead and those that left for ten minutes
// more. The Table holds the facts, last writer wins. Both are plain state without a
// clock; Members guards them with one mutex, under which it calls nothing else.
//
// # Who is let in
//
// A node says what it is in its metadata (Meta). Every node checks every other, when
// states are merged and at each news of a live one, by the same symmetric rule
// (admit): cluster, protocol, hash key, block size. Packets carry the cluster's name
// as label, which the gate checks before memberlist sees them and answers with both
// names. A refusal is counted each time and logged once per peer and text.
//
// # Joining
//
// A round resolves the configured names, adds the members lost in the last ten
// minutes, leaves out who is live, and calls at most three addresses at random, side
// by side. Rounds come every 15 s, every 3 s while someone is missing, at 1 s, 2 s, 3 s while
// alone, and every second while others still know this node's name at another
// address and for three rounds after a change, which then also compare states with a
// live member: gossip alone leaves one node in a hundred or so without the news until the next exchange, 15 s
// later. All times are jittered by half. It never ends, so two clusters that should
// be one heal.
//
// A crashed node's name may move to another address 5 s after its death is known; a
// node that left may return anywhere at once.
//
// # Goroutines
//
// New starts memberlist's and the gate's two. Run owns the rest: itself, which alone
// calls OnChange and OnFact, and the joiner with its calls. All end before Run returns,
// but for what memberlist has under way: a probe lasts up to two seconds, and touches only its own
// memory. Delegates run under memberlist's node lock: they update the roster or
// enqueue, and never call back.
//
// # Bounds
//
// 256 live members, 256 listed. 65,536 facts of 8 MiB of strings. 1,024 messages of 1,200 bytes
// wait to be merged, 4,096 facts to be told; beyond, they are dropped and counted. 64
// inbound streams of 4 MiB. Whoever knows the cluster's name and reaches the port can
// claim anything, unless gossip keys are set.
package member
