package tokenizer

import "math/bits"

// pairs holds the merges: of two tokens, the rank of their merge and the token that
// it makes. It is an open hash table without deletions: a lookup, of which a long
// text takes millions, is one multiplication and mostly one line of memory.
type pairs struct {
	slots []pair
	shift uint
}

type pair struct {
	key   uint64 // the two tokens, plus one so that 0 is an empty slot
	value uint64 // rank << 32 | token
}

// noPair is the value of a pair that doesn't merge: a rank behind all others.
const noPair = ^uint64(0)

// newPairs makes room for n pairs, at most half of the table.
func newPairs(n int) pairs {
	width := bits.Len(uint(max(2*n, 2)))
	return pairs{make([]pair, 1<<width), uint(64 - width)}
}

func pairKey(a, b uint32) uint64 { return (uint64(a)<<32 | uint64(b)) + 1 }

func (p *pairs) slot(key uint64) int {
	i := int(key * 0x9e3779b97f4a7c15 >> p.shift)
	for p.slots[i].key != key && p.slots[i].key != 0 {
		i = (i + 1) & (len(p.slots) - 1)
	}
	return i
}

func (p *pairs) set(a, b, rank, id uint32) {
	key := pairKey(a, b)
	p.slots[p.slot(key)] = pair{key, uint64(rank)<<32 | uint64(id)}
}

func (p *pairs) get(a, b uint32) uint64 {
	if s := p.slots[p.slot(pairKey(a, b))]; s.key != 0 {
		return s.value
	}
	return noPair
}
