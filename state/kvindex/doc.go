// Package kvindex knows exactly which engine holds which block of which prompt: it
// is told by the engines' own events, or by other nodes that are.
//
// # Keys
//
// An engine's hash of a block means nothing outside the engine. So each block gets
// a key of ours, from the tokens that its event carries:
//
//	root  = SipHash(key; "kv" | block size | length of LoRA name | LoRA name | salt)
//	key_i = SipHash(key; key_{i-1} | tokens, 4 bytes each | extras)
//
// all little-endian, where the extras (MixExtra) are 8 bytes, and none where the block
// depends on nothing else. The keys of a prompt are computed in the same way, so
// a lookup needs no engine hash. Where events carry no tokens, the engine's hashes
// are computed from the prompt instead (package enginehash), and the key is
// SipHash(key; engine's hash | what tells the algorithm and its seed apart).
//
// # Data
//
// There are two kinds of table, both of the same make (table): open addressing
// with entries in the order of their hashes, which grows and shrinks by 64 places at
// a time, so that no lock is held for a whole rehash. Memory comes in chunks of 256
// entries that count against one bound.
//
//   - Of each source: the engine's hash -> key and copies in each tier, 20 bytes.
//     Only its feeder needs it. Peers' sources, told in keys, have none.
//   - The blocks: key -> holders, 16 bytes an entry, in up to 128 shards by
//     the first bits of the key. One entry is one holder and two sample tokens, or up to
//     48 sources with neighbouring numbers that have the block in the same tiers, a bit
//     each. A prompt that 100 sources hold is followed with a head and 3 groups a
//     block, mostly in 2 or 3 cache lines: memory is what a lookup waits for. At 100
//     sources it takes 55 to 130 µs for 8k tokens and 1.0 to 1.7 ms for 100k, hashing
//     included: less where one source holds it or the index is small, more where all do or it
//     has 6 Mi entries. Where each source has each block in tiers of its own, it takes
//     about three times as long. A block that has the holders of the one before, as most
//     of a prompt's have, is only compared with it.
//
// A source has a number in the entries. Reset and Close give it up, in constant time:
// lookups don't see a dead number, and whoever writes next sweeps some of the
// entries, until a dead number is in none and can be given out again. The sweep
// goes by hash, as paging does: entries move only in that order, so neither misses
// one.
//
// # Copies and names
//
// An engine that has a block twice says so twice, and tells of each end. Copies are
// counted by the engine's hash and tier. More than one hash of a source may
// come to the same key, where the engine's depends on something that its events do
// not show: the key is held until the last of them is gone. What Forget took is
// held again from the next Store on, which counts anew.
//
// # Who may touch what
//
// Lookup, Heard, List and all Stats may be called by any goroutine at any time, Page
// and Forget, too. The rest of a source's methods belong to its feeder.
//
// Locks are taken in this order: Source.feed, Source.mu, sweeper.mu, Index.mu or
// a shard's. A lookup takes those of the shards of 16 blocks at a time, in order,
// for about a microsecond, and so does who feeds a source, to have the processor read
// the memory of 16 blocks at once. Changes take one shard's lock at a time, for one block, or
// for 64 places of the sweep. Lookups see the live sources as they were in one moment (view).
//
// # Bounds
//
//   - Memory (Config.MaxBytes): at the bound, what is dead is swept first; then new
//     blocks are dropped and counted, and their source is Partial until Reset. So are
//     those left in fewer tiers than the holders they were with: that takes an entry, too.
//   - Sources (65,535, with those closed and not swept): Open sweeps, then fails.
//   - Copies of a block: 16,383 on the GPU, 63 in each other tier; above that
//     they are not counted, and the block is believed gone too early.
//   - Numbers apart by 48 or more are entries apart, and so are holders in other tiers: a
//     block that thousands of sources hold is a run of a hundred entries or more, which is
//     found and changed more slowly.
package kvindex
