package kvindex

import (
	"math/bits"
	"sync"
)

// A block's holders are entries of its shard's table, side by side under its key.
// The first is its head: one holder, and the block's first two tokens. Every other
// is a group: up to 12 holders whose numbers are neighbours, 4 bits of tiers each.
// A holder is in one place only. So a block costs one entry where one source has
// it, two where two have it, and one in 12 where all have it.
//
//	head:  1 | 0 | source 16 | tiers 4 | second token 21 | first token 21
//	group: 0 | group 15 | tiers of 12 sources, 4 bits each
const (
	headBit     = 1 << 63
	sampleBits  = 21
	sampleMask  = 1<<sampleBits - 1
	tiersAt     = 2 * sampleBits
	sourceAt    = tiersAt + Tiers
	groupAt     = groupSize * Tiers
	groupSize   = 12
	groupTiers  = 1<<groupAt - 1
	firstOfEach = 0x1111_1111_1111 // the lowest bit of each source in a group
)

// number is what a source is called in the entries.
type number uint16

func (n number) group() uint64 { return uint64(n) / groupSize }
func (n number) shift() uint   { return uint(n) % groupSize * Tiers }

func headOf(n number, tiers uint8, sample uint64) uint64 {
	return headBit | uint64(n)<<sourceAt | uint64(tiers)<<tiersAt | sample
}

func headSource(v uint64) number { return number(v >> sourceAt) }
func headTiers(v uint64) uint8   { return uint8(v>>tiersAt) & (1<<Tiers - 1) }
func sampleOf(v uint64) uint64   { return v & (1<<tiersAt - 1) }

func groupOf(v uint64) uint64 { return v >> groupAt }

// packSample keeps what fits of the two first tokens.
func packSample(first, second uint32) uint64 {
	return uint64(min(first, sampleMask)) | uint64(min(second, sampleMask))<<sampleBits
}

func unpackSample(s uint64) [2]uint32 {
	return [2]uint32{uint32(s & sampleMask), uint32(s >> sampleBits & sampleMask)}
}

// shard is the blocks whose keys begin with the same bits. Its table has the keys
// turned by those bits, so that the bits that differ come first and the order
// is that of the keys.
type shard struct {
	mu     sync.Mutex // held for at most bite places, and by lookups for lookupBatch blocks
	table  table[uint64]
	blocks int
	_      [64]byte // no shard's lock is on the line of another's
}

// holdBy changes the tiers in which a source holds a block to before&keep | add,
// under the lock. ok is false where there is no memory to add it.
func (s *shard) holdBy(hash uint64, n number, keep, add uint8, sample uint64) (before, after uint8, ok bool) {
	s.table.loose = s.table.n >= looseEntries*s.blocks
	room := add == 0 || s.table.reserve()
	place, end, known := s.locate(hash, n)
	if place == nowhere {
		if add == 0 || !room {
			return 0, 0, room
		}
		return 0, add, s.enter(end, hash, n, add, sample, known)
	}
	v := s.table.val(place)
	if *v&headBit != 0 {
		if before = headTiers(*v); sampleOf(*v) == 0 {
			*v |= sample // a store without tokens came first
		}
		after = before&keep | add
		*v = *v&^(0xf<<tiersAt) | uint64(after)<<tiersAt
		if after == 0 {
			s.behead(place, hash)
			s.table.settle()
		}
		return before, after, true
	}
	before = uint8(*v>>n.shift()) & 0xf
	after = before&keep | add
	*v = *v&^(0xf<<n.shift()) | uint64(after)<<n.shift()
	if *v&groupTiers == 0 {
		s.table.remove(place)
		s.table.settle()
	}
	return before, after, true
}

// looseEntries is how many entries a block has on average from which on the shard's
// table is looser: a block then has more than as many holders, and even if each had
// an entry of its own the memory for a holder would not be more than for a single one.
const looseEntries = 4

// nowhere is no place of a table.
const nowhere = 1<<64 - 1

// locate returns the entry that a source has, or has room in, or nowhere; end is the
// place after the block's last entry then. known: the block has a head.
func (s *shard) locate(hash uint64, n number) (place, end uint64, known bool) {
	place, ok := s.table.find(hash)
	if !ok {
		return nowhere, place, false
	}
	if headSource(*s.table.val(place)) == n {
		return place, place, true
	}
	for place++; s.table.hashAt(place) == hash; place++ {
		if groupOf(*s.table.val(place)) == n.group() {
			return place, place, true
		}
	}
	return nowhere, place, true
}

// enter adds an entry at the end of a block's.
func (s *shard) enter(end, hash uint64, n number, tiers uint8, sample uint64, known bool) bool {
	v := headOf(n, tiers, sample)
	if known {
		v = n.group()<<groupAt | uint64(tiers)<<n.shift()
	}
	if !s.table.insert(end, hash, v) {
		return false
	}
	if !known {
		s.blocks++
	}
	return true
}

// behead takes the holder out of a block's head: another holder takes its place,
// or the block goes.
func (s *shard) behead(place, hash uint64) {
	if s.table.hashAt(place+1) != hash {
		s.table.remove(place)
		s.blocks--
		return
	}
	head, v := s.table.val(place), s.table.val(place+1)
	at := uint(bits.TrailingZeros64(*v&groupTiers)) / Tiers
	tiers := uint8(*v>>(at*Tiers)) & 0xf
	*v &^= 0xf << (at * Tiers)
	*head = headOf(number(groupOf(*v)*groupSize+uint64(at)), tiers, sampleOf(*head))
	if *v&groupTiers == 0 {
		s.table.remove(place + 1)
	}
}

// tiers is in which tiers a source holds a block, under the lock.
func (s *shard) tiers(hash uint64, n number) (tiers uint8, sample uint64) {
	place, ok := s.table.find(hash)
	if !ok {
		return 0, 0
	}
	sample = sampleOf(*s.table.val(place))
	if place, _, _ = s.locate(hash, n); place == nowhere {
		return 0, sample
	}
	v := *s.table.val(place)
	if v&headBit != 0 {
		return headTiers(v), sample
	}
	return uint8(v>>n.shift()) & 0xf, sample
}
