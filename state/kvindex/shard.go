package kvindex

import (
	"math/bits"
	"sync"
)

// A block's holders are entries of its shard's table, side by side under its key.
// The first is its head: one holder, and the block's first two tokens. Every other
// is a group: up to 48 holders whose numbers are neighbours and that have the block
// in the same tiers, one bit each. A holder is in one place only. So a block costs one
// entry where one source has it, two where two have it, and one in 48 where all have
// it in the same tiers.
//
//	head:  1 | 0 | source 16 | tiers 4 | second token 21 | first token 21
//	group: 0 | tiers 4 | group 11 | sources 48
const (
	headBit    = 1 << 63
	sampleBits = 21
	sampleMask = 1<<sampleBits - 1
	sampleBoth = 1<<tiersAt - 1
	tiersAt    = 2 * sampleBits
	sourceAt   = tiersAt + Tiers

	groupSize    = 48
	groupSources = 1<<groupSize - 1
	groupBits    = 11
	groupMask    = 1<<groupBits - 1
	groupTiersAt = groupSize + groupBits
)

// number is what a source is called in the entries.
type number uint16

func (n number) group() uint64 { return uint64(n) / groupSize }
func (n number) bit() uint64   { return 1 << (n % groupSize) }

// member is the number of a group's source that a bit's position stands for.
func member(group uint64, at int) number { return number(group*groupSize + uint64(at)) }

func headOf(n number, tiers uint8, sample uint64) uint64 {
	return headBit | uint64(n)<<sourceAt | uint64(tiers)<<tiersAt | sample
}

func headSource(v uint64) number { return number(v >> sourceAt) }
func headTiers(v uint64) uint8   { return uint8(v>>tiersAt) & (1<<Tiers - 1) }
func sampleOf(v uint64) uint64   { return v & sampleBoth }

// groupIn is a group of those that have a block in some tiers, without sources.
func groupIn(group uint64, tiers uint8) uint64 {
	return uint64(tiers)<<groupTiersAt | group<<groupSize
}

func groupOf(v uint64) uint64   { return v >> groupSize & groupMask }
func groupTiers(v uint64) uint8 { return uint8(v >> groupTiersAt) }

// entryTiers are those of a head or a group.
func entryTiers(v uint64) uint8 {
	if v&headBit != 0 {
		return headTiers(v)
	}
	return groupTiers(v)
}

// packSample keeps what fits of the two first tokens.
func packSample(first, second uint32) uint64 {
	return uint64(min(first, sampleMask)) | uint64(min(second, sampleMask))<<sampleBits
}

func unpackSample(s uint64) [2]uint32 {
	return [2]uint32{uint32(s & sampleMask), uint32(s >> sampleBits & sampleMask)}
}

// shard is the blocks whose keys begin with the same bits. Its table has the keys
// turned by those bits, so that the bits that differ come first and the order
// is that of the keys. Its size is a multiple of a cache line's, so that no shard's lock is
// on the line of another's.
type shard struct {
	mu     sync.Mutex // held for at most bite places, and by lookups for a batch of blocks
	table  table[uint64]
	blocks int
}

// holdBy changes the tiers in which a source holds a block to before&keep | add,
// under the lock. ok is false where there is no memory for that: nothing is changed then
// where the source was only to hold it in more tiers, and else it holds it no longer.
func (s *shard) holdBy(hash uint64, n number, keep, add uint8, sample uint64) (before, after uint8, ok bool) {
	s.table.loose = s.table.n >= looseEntries*s.blocks
	room := keep|add == 0 || s.table.reserve()
	head, place := s.locate(hash, n)
	if place == nowhere {
		if add == 0 {
			return 0, 0, true
		}
		if !s.enter(head, hash, n, add, sample, room) {
			return 0, 0, false
		}
		return 0, add, true
	}
	before = entryTiers(*s.table.val(place))
	after = before&keep | add
	if place == head {
		s.changeHead(place, hash, after, sample)
		return before, after, true
	}
	after, ok = s.move(head, place, hash, n, after, room)
	return before, after, ok
}

// changeHead sets the tiers of a block's head.
func (s *shard) changeHead(place, hash uint64, tiers uint8, sample uint64) {
	v := s.table.val(place)
	if sampleOf(*v) == 0 {
		*v |= sample // a store without tokens came first
	}
	*v = *v&^(0xf<<tiersAt) | uint64(tiers)<<tiersAt
	if tiers == 0 {
		s.behead(place, hash)
		s.table.settle()
	}
}

// move takes a source from the group at a place to the one of other tiers, or of none.
// Where there is no memory for that it stays if it would have more tiers, and
// else it is taken out: it returns what tiers it has.
func (s *shard) move(head, place, hash uint64, n number, tiers uint8, room bool) (after uint8, ok bool) {
	v := s.table.val(place)
	before, alone := groupTiers(*v), *v&groupSources == n.bit()
	if tiers == before {
		return before, true
	}
	ok = true
	if tiers != 0 && !s.join(head, hash, n, tiers, room && !alone) {
		switch {
		case alone:
			*v = groupIn(n.group(), tiers) | n.bit()
			return tiers, true
		case tiers&before == before:
			return before, false
		}
		tiers, ok = 0, false
	}
	s.leave(place, n)
	s.table.settle()
	return tiers, ok
}

// leave takes a source out of the group at a place, which goes if it was the last.
func (s *shard) leave(place uint64, n number) {
	v := s.table.val(place)
	if *v &^= n.bit(); *v&groupSources == 0 {
		s.table.remove(place)
	}
}

// looseEntries is how many entries a block has on average from which on the shard's
// table is looser: a block then has more than as many holders, and even if each had
// an entry of its own the memory for a holder would not be more than for a single one.
const looseEntries = 4

// nowhere is no place of a table.
const nowhere = 1<<64 - 1

// locate returns the place of a block's head, or where it would be put, and that of the
// entry which a source is in, or nowhere.
func (s *shard) locate(hash uint64, n number) (head, place uint64) {
	head, ok := s.table.find(hash)
	if !ok {
		return head, nowhere
	}
	if headSource(*s.table.val(head)) == n {
		return head, head
	}
	const which = groupMask << groupSize
	for place = head + 1; s.table.hashAt(place) == hash; place++ {
		if *s.table.val(place)&(which|n.bit()) == n.group()<<groupSize|n.bit() {
			return head, place
		}
	}
	return head, nowhere
}

// enter adds a source to a block's holders, the first of which is its head.
func (s *shard) enter(head, hash uint64, n number, tiers uint8, sample uint64, room bool) bool {
	if s.table.hashAt(head) == hash {
		return s.join(head, hash, n, tiers, room)
	}
	if !room || !s.table.insert(head, hash, headOf(n, tiers, sample)) {
		return false
	}
	s.blocks++
	return true
}

// join adds a source to the group of its tiers, which becomes the block's last entry
// where there is none; that needs room.
func (s *shard) join(head, hash uint64, n number, tiers uint8, room bool) bool {
	group := groupIn(n.group(), tiers)
	place := head + 1
	for ; s.table.hashAt(place) == hash; place++ {
		if v := s.table.val(place); *v&^groupSources == group {
			*v |= n.bit()
			return true
		}
	}
	return room && s.table.insert(place, hash, group|n.bit())
}

// behead takes the holder out of a block's head: another holder takes its place,
// or the block goes.
func (s *shard) behead(place, hash uint64) {
	if s.table.hashAt(place+1) != hash {
		s.table.remove(place)
		s.blocks--
		return
	}
	head, v := s.table.val(place), *s.table.val(place + 1)
	n := member(groupOf(v), bits.TrailingZeros64(v&groupSources))
	*head = headOf(n, groupTiers(v), sampleOf(*head))
	s.leave(place+1, n)
}

// tiers is in which tiers a source holds a block, under the lock.
func (s *shard) tiers(hash uint64, n number) (tiers uint8, sample uint64) {
	head, place := s.locate(hash, n)
	if place == nowhere {
		return 0, 0
	}
	return entryTiers(*s.table.val(place)), sampleOf(*s.table.val(head))
}
