package kvindex

import (
	"kvca/state"
	"kvca/state/enginehash"
)

// view is what lookups need of the live sources. It is made anew whenever one of
// them changes, and never written after.
type view struct {
	families []family
	seats    []seat   // by number
	slots    []uint64 // a bit for each backend with a live source
	sizes    []int32  // by slot: tokens of a block there, 0 not learned yet
}

// seat is whose number it is.
type seat struct {
	slot state.Slot
	rank int32
}

// family is the live sources that know a prompt by the same keys.
type family struct {
	blockSize int
	named     *enginehash.Chain
	print     uint64
	groups    []members
}

// members are sources of a group, a bit each.
type members struct {
	group   uint64
	sources uint64
}

func (v *view) heard(s state.Slot) bool {
	return int(s/64) < len(v.slots) && v.slots[s/64]>>(s%64)&1 != 0
}

// publish makes a new view.
func (x *Index) publish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := &view{seats: make([]seat, len(x.numbers.holders))}
	for n, s := range x.numbers.holders {
		if s == nil || !s.live {
			continue
		}
		v.seats[n] = seat{s.origin.Slot, int32(s.origin.Rank)}
		for len(v.slots) <= int(s.origin.Slot/64) {
			v.slots = append(v.slots, 0)
		}
		v.slots[s.origin.Slot/64] |= 1 << (s.origin.Slot % 64)
		if size := int(s.blockSize.Load()); size > 0 {
			v.join(s, size, number(n))
			for len(v.sizes) <= int(s.origin.Slot) {
				v.sizes = append(v.sizes, 0)
			}
			v.sizes[s.origin.Slot] = int32(size)
		}
	}
	x.view.Store(v)
}

func (v *view) join(s *Source, blockSize int, n number) {
	i := 0
	for ; i < len(v.families); i++ {
		if f := &v.families[i]; f.blockSize == blockSize && f.print == s.print {
			break
		}
	}
	if i == len(v.families) {
		v.families = append(v.families, family{blockSize: blockSize, named: s.origin.Named, print: s.print})
	}
	f := &v.families[i]
	if last := len(f.groups) - 1; last < 0 || f.groups[last].group != n.group() {
		f.groups = append(f.groups, members{group: n.group()})
	}
	f.groups[len(f.groups)-1].sources |= n.bit()
}
