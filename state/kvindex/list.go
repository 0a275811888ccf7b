package kvindex

import (
	"math/bits"

	"kvca/state"
)

// Filter chooses blocks; its zero value chooses all.
type Filter struct {
	Model string // empty: of any
	Slot  state.Slot
	// BySlot and ByTier say that Slot and Tier count.
	BySlot bool
	Tier   Tier
	ByTier bool
}

// Block is a block with those of its holders that a filter chose.
type Block struct {
	Key       uint64
	BlockSize int
	// Sample are the block's first two tokens, where they are known; those that have more
	// than 21 bits come as 2,097,151.
	Sample  []uint32
	Holders []Holder
}

// Holder is one source that has a block, with a bit for each tier.
type Holder struct {
	Origin Origin
	Tiers  uint8
}

// listScan bounds the blocks that one List looks at, so that a filter that chooses
// few holds nobody up.
const listScan = 1 << 14

// List appends at most limit blocks to dst, in the order of keys, from a cursor on: 0
// begins, and 0 comes back at the end. Fewer than limit, or none, may come before the
// end. A block that is there all the while is listed once.
func (x *Index) List(f Filter, cursor uint64, limit int, dst []Block) ([]Block, uint64) {
	if limit < 1 {
		return dst, cursor
	}
	x.mu.Lock()
	sources := append([]*Source(nil), x.numbers.holders...)
	x.mu.Unlock()
	next := x.scan(cursor, listScan, 1, func(s *shard, hash uint64) bool {
		if b, ok := s.block(hash, sources, &f); ok {
			b.Key = x.keyOf(hash)
			dst = append(dst, b)
			limit--
		}
		return limit > 0
	})
	return dst, next
}

// block reads a block, under the lock; false where no holder is chosen.
func (s *shard) block(hash uint64, all []*Source, f *Filter) (b Block, ok bool) {
	place, _ := s.table.find(hash)
	v := *s.table.val(place)
	b.add(headSource(v), headTiers(v), all, f)
	sample := unpackSample(sampleOf(v))
	for place++; s.table.hashAt(place) == hash; place++ {
		v := *s.table.val(place)
		for sources := v & groupSources; sources != 0; sources &= sources - 1 {
			b.add(member(groupOf(v), bits.TrailingZeros64(sources)), groupTiers(v), all, f)
		}
	}
	if len(b.Holders) == 0 {
		return b, false
	}
	if sample != [2]uint32{} {
		b.Sample = sample[:min(2, b.BlockSize)]
	}
	return b, true
}

func (b *Block) add(n number, tiers uint8, sources []*Source, f *Filter) {
	if int(n) >= len(sources) || sources[n] == nil {
		return
	}
	o := &sources[n].origin
	if f.Model != "" && f.Model != o.Model || f.BySlot && f.Slot != o.Slot ||
		f.ByTier && (f.Tier >= Tiers || tiers>>f.Tier&1 == 0) {
		return
	}
	b.BlockSize = int(sources[n].blockSize.Load())
	b.Holders = append(b.Holders, Holder{Origin: *o, Tiers: tiers})
}
