// Package tenant says who sends a request, what it may do, and when its turn comes.
//
// # Keys
//
// A Directory is the keys file. It holds tenants and the hashes of their keys, never
// a key: who reads the file, the memory or a log can't send requests with what is
// found there. A key is 256 bits of chance, so a plain SHA-256 hides it; keys that
// people make up are as weak as they are short, whatever the hash.
//
// What was read is an immutable snapshot behind an atomic pointer. Find takes a
// request's headers to its Tenant without a lock and without an allocation. A reload
// takes the whole file or nothing of it: a file with faults leaves the snapshot as it
// is, also where it would have taken a key away. So what may be wrong in a hurry (no
// keys at all, keys long expired) is a warning and no fault.
//
// Run is the only goroutine, its caller's. It looks at the file and the salts' files
// each two seconds, and logs what changed by the names of tenants and fields.
//
// # Limits
//
// A Limiter holds a tenant to its Limits, across nodes (limiter.go).
//
// # Queue
//
// A Queue stands before a pool that has no room. Its order is a pure state machine
// (order), which takes the time as an argument:
//
//   - classes come strictly first to last; who has waited for half of MaxWait moves
//     to class 0, so that no class starves another;
//   - within a class, tenants take turns by weight (start-time fair queueing, each
//     request costs 1);
//   - within a tenant, who came first goes first.
//
// Where the queue is full, the worst class gives way, and in it the tenant with most
// waiters, its newest first: a flood sheds itself. A request makes at most maxGiveWay
// others lose their place, and none unless that lets it in.
//
// Who waits does so on the goroutine of its request; there is no other. Time passes
// by a timer that runs only while someone waits: each tick drops who waited too long
// and asks for room, since other nodes may have made some.
// Whether there is room shows only once those who were let in have been booked, which
// Booked says; until then, or for settleTime, each counts as one that has its slot.
//
// There are two orders. One has who waits at this node: its bounds say who gets a place
// here, who gives way, and who has waited too long. The other has whose turn comes next in
// the pools that are called from here. Without other nodes both have the same waiters.
//
// With Share one node calls for each pool, and everybody's waiters stand in its order of
// calls (package turn says what nodes tell each other). The memory stays with the node
// that has the request, as do its deadline and its place. A waiter is put before
// another caller when the caller changes; before this node where the caller
// can't be reached, says no, or has not said for crowdedFor that somebody waits. So two
// nodes may call for one pool for a moment, and let in more than there is room for, but
// nobody is forgotten: what the caller has of another node goes with the link, and what
// was not taken back five seconds after its deadline. That somebody waits is told to all
// nodes within a tick, so others may still pass those who came last. A caller that knows
// other backends under the name of a pool says no, too.
//
// One mutex guards both orders. It isn't held while a room is asked, and not
// taken at all where nobody waits. Messages are sent under it, so that they go in the
// order in which things happened; sending does not wait. A turn costs a heap's step, an
// arrival in a full queue a look at each tenant that waits.
//
// # Bounds
//
// The keys file: 1 MiB, 5,000 tenants, 10,000 keys, 1,024 models each, nested 32 deep; of
// its faults the first 50 are told. A key: 256 bytes. The queue: MaxWaiting requests, at
// most 16,384, and MaxBytes of their bodies over all pools; MaxWait each; 65,536 waiters at
// other nodes, 4,096 pools in which they wait; the shares of at most 4,096 tenants that
// have no request waiting are remembered for each class of a pool.
package tenant
