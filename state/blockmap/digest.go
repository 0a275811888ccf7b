package blockmap

import (
	"math/bits"
	"time"

	"kvca/state"
)

// digestBuckets is how many parts of the map are compared apart. It, Bucket and
// mark are part of what nodes tell each other and can't change alone.
const (
	digestBuckets = 1 << digestBits
	digestBits    = 12
)

// Digest sums up which backend holds which block, by the block's bucket. Two
// nodes with equal digests hold the same; where some buckets differ, only their
// blocks need to be told. Deadlines are not in it: no two nodes agree on them.
type Digest [digestBuckets]uint64

// Bucket is the bucket of a block.
func Bucket(hash uint64) int { return int(hash >> (64 - digestBits)) }

// Diff returns the buckets in which d and o differ, and how many they are.
func (d *Digest) Diff(o *Digest) (b Buckets, n int) {
	for i := range d {
		if d[i] != o[i] {
			b.Set(i)
			n++
		}
	}
	return b, n
}

// Buckets is a set of buckets.
type Buckets [digestBuckets / 64]uint64

func (b *Buckets) Set(i int) { b[i/64] |= 1 << (i % 64) }

func (b *Buckets) Has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }

// All puts every bucket in.
func (b *Buckets) All() {
	for i := range b {
		b[i] = 1<<64 - 1
	}
}

func (b *Buckets) Empty() bool { return *b == Buckets{} }

func (b *Buckets) Count() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// mark is what a location adds to its bucket: the finalizer of MurmurHash3, so
// that locations that differ in anything differ in half of their bits.
func mark(hash, key uint64) uint64 {
	x := hash ^ bits.RotateLeft64(key*0x9E3779B97F4A7C15, 32)
	x = (x ^ x>>33) * 0xFF51AFD7ED558CCD
	x = (x ^ x>>33) * 0xC4CEB9FE1A85EC53
	return x ^ x>>33
}

// endTime is how long before its end a location is no longer told or counted:
// nodes agree on its end by a second or so, and would else tell each other what
// is about to go. It is less where the TTL is below 40 s.
const endTime = 5 * time.Second

// told returns the soonest deadline of what is told and counted: what has been
// used within the horizon, and is not about to end.
func (m *Map) told(horizon time.Duration, now uint32) (deadline uint32) {
	idle := uint32(min(ticks(horizon), uint64(m.ttl)))
	return now + max(m.ttl-idle, min(uint32(ticks(endTime)), m.ttl/8))
}

// Digest sums up what is held, a chunk of entries for each hold of the read
// lock. of tells for a slot the key of its
// backend, the same on every node; how lately a location must have been used to
// count, so that what some node's bounds are about to evict is not missed by
// the others; and whether it counts at all. What changes meanwhile may count
// or not.
func (m *Map) Digest(d *Digest, now time.Duration, of func(state.Slot) (key uint64, horizon time.Duration, ok bool)) {
	*d = Digest{}
	t := uint32(ticks(now))
	slots := make([]digestSlot, m.slots.top.Load())
	for s := range slots {
		if key, horizon, ok := of(state.Slot(s)); ok {
			slots[s] = digestSlot{key: key, soonest: m.told(horizon, t), ok: true}
		}
	}
	for from := uint32(1); from != 0; {
		from = m.digestPiece(d, from, slots)
	}
}

type digestSlot struct {
	key     uint64
	soonest uint32 // deadline that counts
	ok      bool
}

// digestPiece adds the entries from the given one to the end of its chunk, and
// returns the next one, 0 at the end.
func (m *Map) digestPiece(d *Digest, from uint32, slots []digestSlot) (next uint32) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	end := min(from|chunkMask+1, m.entries.used)
	for i := from; i < end; i++ {
		e := m.entries.at(i)
		if e.inc == 0 {
			continue // free
		}
		in := m.incs.at(uint32(e.inc))
		if in.dead || int(in.slot) >= len(slots) {
			continue
		}
		s := &slots[in.slot]
		if !s.ok || before(e.deadline, s.soonest) {
			continue
		}
		hash := m.hash(e)
		d[Bucket(hash)] ^= mark(hash, s.key)
	}
	if end == m.entries.used {
		return 0
	}
	return end
}

// hash is the hash of the block that e is a location of.
func (m *Map) hash(e *entry) uint64 {
	if e.count == 0 {
		e = m.entries.at(e.parent)
	}
	return e.hash
}
