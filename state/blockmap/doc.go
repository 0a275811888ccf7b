// Package blockmap knows which backend is believed to hold which block of the
// prompt cache: hash -> locations, each with an idle TTL. It is best effort: a
// wrong entry costs a slower answer, never a wrong one.
//
// # Data
//
// There is one kind of record, the entry, and it is a location. The first
// location of a block carries the block too (its hash, its parent, how many
// locations and children it has); further locations of that block are entries
// of their own that refer to it. So there are always as many entries as
// locations, removing any location frees exactly one entry, and no mix of
// workloads can strand memory in a pool of the other kind. An entry is 40 bytes
// and has one 4-byte bucket in the index: 44 bytes a location, whether a block
// has one of them or a thousand.
//
// Each entry is on up to four lists:
//
//   - its bucket of the index, blocks by hash and further locations by block and
//     backend, so that neither a refresh nor a removal ever searches through
//     the holders of a popular block;
//   - the locations of its block;
//   - the locations of its backend, least recently used first, which is the
//     order of deadlines too, but for what Merge found no place for nearby;
//   - the free list, when it is not in use.
//
// The index is a linear hash table: it gains one bucket with each new entry
// and splits one old one for it. It is never rehashed as a whole, and removal
// leaves no tombstones. Blocks learned together mostly lie in a row, so a walk
// looks beside the last block first, and asks the index only where a branch
// begins; where it must, it loads what the next lookups need in one go, since
// cache misses are most of the time there (see warm.go). Entries and buckets live in chunks without pointers
// that are taken as the map fills and are kept.
//
// An incarnation is one backend slot between two voids. Void marks it dead and
// queues it, in constant time; walks skip what is dead, and the memory comes
// back a piece at a time. A heap of incarnations by the deadline of their oldest
// location finds what is next to expire. Its keys are only corrected at the top.
//
// Tentative locations (routed, unanswered requests) are a separate, smaller
// table of counted pairs of block and slot with a lock of its own. They carry
// their slot's generation, so a void needs not find them; requests from before
// a void are still counted apart, so that each Unexpect finds its Expect.
//
// # Prefixes
//
// What a backend holds is closed under prefixes: Learn links a chain from its
// leaf to its root, so whatever evicts takes leaves before what leads to them.
// Two things follow. The holders of a block are among those of the block
// before, so where both have as many, they are the same backends: a walk visits
// the holders only where the number changes, and a system prompt of 64 blocks
// on 1,000 backends costs 1,000 visits instead of 64,000. And the holders of the
// deepest block hold all before it.
//
// Forget breaks the rule where another branch of the forgotten prefix stays.
// The parent is then marked, or the tie between it and its child is cut where
// it went altogether; either way walks visit it always, so that nobody who holds
// it is missed. The backend that forgot may be believed to hold the gap
// as long as it holds what is below it; the next refresh makes that true, and
// expiry ends it.
// A chain of more than 64 blocks is learned in pieces from its end, so for
// some microseconds it is known at its end and not at its root. Nothing finds it
// there: a walk begins at the root.
//
// Merge keeps the rule where it can: news refreshes the known blocks before it,
// and a repaired block never outlives the one before it. Where a run comes
// without what leads to it, the block before is marked in the same way; blocks
// whose parent is unknown are adopted when a chain that has both comes by.
//
// Fan-out is the number of children present in the map, kept in the parent. A
// child knows its parent by entry and version, so a parent that went first is
// not mistaken for the block that has its entry now. The number stays at 65,535
// once there. Children that have expired count until Vacuum has been there.
//
// # Who may touch what
//
// Every method may be called from any goroutine. Walk, Digest, Page, Held and
// Stats take read locks, Age and Generation none. Learn, Merge, Forget,
// SetMirror, Expect, Unexpect and Vacuum write, at most 64 locations (Learn and
// Merge: plus as many evictions and twice as many of the mirror) for each hold
// of a lock, then let readers in. Walk and Cursor values belong to one goroutine. Nothing here starts a goroutine or reads
// a clock: the owner calls Vacuum when NextDeadline says so, and at least every
// few days.
//
// # Time
//
// now is the monotonic time since the node's epoch, not negative. It is kept in
// ticks of 2^20 ns. A location ends up to two ticks early and never late. Where two callers
// read the clock in one order and come here in the other, the later deadline
// counts for both.
//
// A location that is merged from another node has less than a full TTL left:
// its idle time is told, not its deadline, since clocks differ. Its place in the
// backend's list is looked for from both ends and beside its parent, 64 steps
// each way; a snapshot, which comes newest first, finds it in one. Where there
// is none so near, the list is loose from then on: a location may have a place
// that is more recent than its deadline says, or be near the oldest end before
// some that end sooner. Vacuum and eviction then find those later than they
// should. What the structures below rely on holds all the same: a block's
// place is more recent than that of the blocks after it, or it is marked; and
// a key of the heap is only ever too early or, in a loose list, as late as
// the list itself. Nothing is believed in past its deadline.
//
// # What nodes compare
//
// Digest and Page leave out the same: what is void, what has not been used
// within the horizon, and what ends within five seconds. A digest is worked out
// when it is asked for, in one pass over the entries in the order of memory.
// Two nodes that hold the same have equal digests, whatever the deadlines;
// repair by it inserts and never extends, or remaining time would grow with
// each way round.
//
// # Bounds
//
//   - Locations (7/8 of MaxBytes): Learn, and Merge of news, first takes back
//     what is void, then evicts the soonest to expire of all backends. It needs
//     room for a whole piece, so up to 64 entries stay empty. Repair evicts
//     nothing and ends at nine tenths.
//   - Tentative locations (1/8 of MaxBytes, 64 bytes each): Expect records
//     nothing of the chain and says so.
//   - A mirror: the backend's least recently used locations go. Of a chain longer
//     than the mirror or the map, the beginning is kept.
//   - Incarnations (65,535, the dead ones with unreclaimed locations included):
//     Learn takes back a piece of the oldest dead one, and learns nothing if that
//     has freed none.
//   - A hold of the lock: 64 locations, as above. The heap's lazy keys can add
//     one correction for each backend refreshed since the last, a millisecond
//     if all 16,384 were.
//   - Beside MaxBytes: 24 bytes for each slot seen, in pages of 256, and 30 for
//     each incarnation, in chunks of 1,024; under 3 MiB at worst.
//
// # Adversaries
//
// The index relies on hashes that are uniform in their low 32 bits, as SipHash
// under a secret key is. A chain that repeats a block, or hashes made to
// collide, cost time or a wrong figure, and break nothing.
package blockmap
