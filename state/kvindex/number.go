package kvindex

import (
	"errors"
	"math/bits"
)

// numbers gives sources their numbers. One that is given back may still be in the
// entries: it is dead until the sweep has been through all of them.
type numbers struct {
	holders []*Source                      // by number; nil: free or dead
	taken   [(MaxSources + 63) / 64]uint64 // dead ones included
	dead    []number                       // not seen by the sweep yet
}

// errNumbers is what Open says where every number is in use.
var errNumbers = errors.New("precise index: open source: 65535 sources are open already; close those of backends that are gone")

// assign gives s the lowest free number, so that groups are dense. Index.mu is held.
func (n *numbers) assign(s *Source) (number, bool) {
	for i, word := range n.taken {
		if word == 1<<64-1 {
			continue
		}
		free := i*64 + bits.TrailingZeros64(^word)
		if free >= MaxSources {
			break
		}
		n.taken[i] |= 1 << (free % 64)
		for len(n.holders) <= free {
			n.holders = append(n.holders, nil)
		}
		n.holders[free] = s
		return number(free), true
	}
	return 0, false
}

// retire takes a number from its source: nobody sees its entries any more.
func (n *numbers) retire(old number) {
	n.holders[old] = nil
	n.dead = append(n.dead, old)
}

// free makes numbers that are in no entry usable again.
func (n *numbers) free(swept []number) {
	for _, old := range swept {
		n.taken[old/64] &^= 1 << (old % 64)
	}
}

// renumber gives a source that is to be empty a number that is in no entry. Where
// all are taken it waits for the sweep: ok is false where even that has freed none.
func (x *Index) renumber(s *Source) (n number, ok bool) {
	x.mu.Lock()
	n, ok = x.numbers.assign(s)
	x.mu.Unlock()
	for try := 0; !ok && try < 2; try++ {
		x.sweepAll()
		x.mu.Lock()
		n, ok = x.numbers.assign(s)
		x.mu.Unlock()
	}
	return n, ok
}

// retire gives a number back.
func (x *Index) retire(n number) {
	x.mu.Lock()
	x.numbers.retire(n)
	x.sweeper.due.Add(1)
	x.mu.Unlock()
}
