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
// and asks for room, since other nodes may have made some. A tick lets in one at a time.
// Whether there is room shows only once those before have been booked: Freed says that
// a request has ended, and lets in one; Booked, that one who was let in has been booked, and lets
// the next in where there is room still.
//
// One mutex guards the order. It isn't held while a caller's room is asked, and not
// taken at all where nobody waits. A turn costs a heap's step, an arrival in a full queue
// a look at each tenant that waits.
//
// # Bounds
//
// The keys file: 1 MiB, 5,000 tenants, 10,000 keys, 1,024 models each, nested 32 deep; of
// its faults the first 50 are told. A key: 256 bytes. The queue: MaxWaiting requests, at
// most 16,384, and MaxBytes of their bodies over all pools; MaxWait each; the shares of
// at most 4,096 tenants that have no request waiting are remembered for each class of
// a pool.
package tenant
