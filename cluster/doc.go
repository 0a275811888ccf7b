// Package cluster makes the state of many nodes one: who is there, who owns which
// backend, what is reserved, and which backend holds which block. There is no
// store beside the nodes, and no leader.
//
// # Data
//
// Each node has one ledger and one block map, and shares them in three ways:
//
//   - Reservations. A backend is owned by the node that rendezvous hashing gives
//     it among the live ones. The routing node surveys the loads as it knows them
//     and asks the owner of the cheapest candidate to choose and book in one step,
//     with the next owner's cost as a bound. The owner's answer, also a refusal,
//     brings fresh figures. Who can't be asked within the budget is left out: of
//     two good candidates drawn at random the better one is taken (degraded).
//   - Loads. A node tells everyone how much it holds on the backends where that has
//     changed: subtotals of its own, which replace what it told before. So what is
//     known of a dead node's load goes with its lease, and a new owner has figures
//     before anyone has told it what it holds.
//   - Locations. What a backend is going to hold goes to each peer once, when the
//     request is routed, as a run: a parent and the new suffix; or the leaf alone
//     where a chain was refreshed. A request that comes to nothing is retracted.
//
// Beside them there is the precise index, where one is given: what engines say that
// they hold, by source (a rank of a backend). A node that reads a source, by a feed of
// its own or from an agent, is its teller: it offers it, and each peer that does not
// read it asks one of those that offer, the first by name that is live, and is told.
// So each entry travels once to each node, and all have the same. A stream is numbered
// parts in one order: a copy in pages and the changes meanwhile, then changes, reset
// where the engine's cache is. A part that is lost costs another copy. What a peer
// told is forgotten with its link, what an agent described with its own: agents are
// let in by credential, for the backends that it lists, and are no peers.
//
// Limits of tenants hold over all nodes in the same way (state/quota): each key has an
// owner, which hands its limit out in slices, and a request is decided from what its
// node has in hand. What is lacking is asked for, one question a key at a time; where
// the owner can't be had within the budget, a node goes by the limit divided by the
// live members, and says so (degraded). What a node does not need goes back with the
// next beat; what it holds is told with the held sets, and replaces what was
// believed. Older nodes skip these frames: what they own is held by shares. While
// configured limits differ, the owner goes by its own if its node has asked for the
// key within a minute, else by the asker's.
//
// Requests that wait for room in a pool of backends wait at their own node; whose turn is
// next one node says for each pool, by the same hashing (Turns carries it, state/turn
// says what nodes tell each other). That a request has begun or ended is told behind
// the loads that show it, so that a caller's figures are no older than what it hears.
//
// Every write wakes a process, which costs more than what is written. So news of
// all kinds gathers for 5 ms and goes together; only questions and answers between
// a routing node and an owner go at once. A candidate that leads so far that no
// fresher figure would change the choice needs no question: its owner is told.
//
// The routing node is the authority on its live reservations. Owners have copies,
// by holder, to decide by. Changes of them are told within 5 ms, and the full set
// at every new link, when owners change, and every two seconds; it replaces the
// copy. A lost message costs balance until then, never a leak.
//
// Backends are named by the key of their id; slots are each node's own. A
// backend's generation is one number for the cluster, the greatest wins; it comes
// with each run of locations and as a fact by gossip.
//
// # States
//
// For a backend, a node is its owner, learns to be (for one lease after it became
// the owner it goes by the greater of what it granted and what others tell), or
// follows. A former owner answers for one more lease whoever has not heard.
//
// A peer is known by its name over any number of links and runs of its process. It
// is leased from the first frame until 1.5 s after the last one, whether the
// connection was closed or went silent; then all that it held here is given back.
// Another boot number gives it back at once.
//
// A peer is dirty while it lacks something that could not be sent. It notices by a
// gap in the numbers of deltas, and compares: it sends a digest of 4,096 buckets,
// and gets the locations of those that differ, newest first for each backend, in
// pages that it acknowledges. Only what is missing is taken; nothing is extended,
// or remaining times would grow on their way through the cluster. Comparisons are
// also made at every new link and, with one peer, about every ten seconds. A new
// node is ready when the first has ended.
//
// # Who may touch what
//
// Run owns every goroutine, and waits for them: membership, the links, and
//
//   - beat, each 50 ms: acknowledgements, leases, held sets, comparisons that are
//     due;
//   - pump, when there is something to tell;
//   - tend, which alone changes the fleet of backends;
//   - two workers a peer: one applies deltas, pages, facts and rosters, one
//     answers digests; with a precise index a third one, which applies what is told
//     of sources. The reader of a link hands over to them what is not small,
//     so that a reservation never waits behind the block map.
//
// Reserve, Release and Learn run on the caller's goroutine. The view (who owns
// what) is replaced as a whole and read without a lock. Order of locks:
// Cluster.meeting, Cluster.viewMu, then calls.mu, then peer.mu; the ledger, the block map and the
// links have their own, taken last. index.mu is taken with none of these held; see index
// for what comes after it.
//
// # Bounds
//
//   - nodes: 63 peers (ledger.MaxHolders);
//   - a batch of locations: 32 KiB before it goes early, 512 KiB before what comes
//     is dropped and all peers are dirty;
//   - what waits for a link: the bounds of its lanes; beyond, the peer is dirty;
//   - what waits to be applied: 4 MiB a peer; beyond, frames are dropped, counted,
//     and found missing by comparison;
//   - pages under way: 512 KiB; a comparison without a cause fetches at most
//     16,384 locations, the next one others;
//   - a question to an owner: its 64 cheapest candidates;
//   - a peer's list of backends: 16,384; its offers of sources: as many;
//   - changes of a source that wait to be told: 512 KiB; beyond, and beyond the lanes'
//     bounds, the peers get another copy, after 250 ms to 16 s;
//   - copies under way to a peer: 256 KiB; parts that wait to be applied: 4 MiB a peer;
//     beyond, they are dropped, counted, and all that it tells is asked for anew;
//   - keys of limits: 65,536, three quarters of them by what peers say; beyond, a key is
//     not limited, and counted as degraded. One that is idle for 30 s is forgotten.
//     1,024 requests wait for the answer about one key; reports go in frames of 12 KiB;
//   - turns told behind the next loads: 4,096 a peer;
//   - agents: 256 links, 4,096 offers each.
//
// # What is not promised
//
// Owners agree only as far as members do. While they differ, two nodes may both
// decide about a backend: loads are off by what was granted meanwhile, at most for
// a lease. On both sides of a partition everything is owned and served; each side
// sees its own load and the engines' own figures. A location that was dropped on
// one node may come back by comparison, until it expires.
package cluster
