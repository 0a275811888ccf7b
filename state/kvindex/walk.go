package kvindex

import "math/bits"

// walk follows a prompt block by block with all sources that hold it so far, 12 of
// them a word. It is scratch that a Result keeps.
type walk struct {
	alive   []aliveGroup
	at      []uint16           // by group: its place in alive, plus one
	slow    [][Tiers - 1]int32 // by number: blocks whose fastest tier is not the GPU
	dirty   []number           // those of slow that are not 0
	blocks  int
	touched uint64
}

// aliveGroup is the sources of a group that hold all blocks so far.
type aliveGroup struct {
	group uint64
	mask  uint64 // all bits of each
	have  uint64 // what they hold of the next block
}

// begin starts with all sources of a family.
func (w *walk) begin(f *family, numbers int) {
	w.alive, w.blocks = w.alive[:0], 0
	for _, n := range w.dirty {
		w.slow[n] = [Tiers - 1]int32{}
	}
	w.dirty = w.dirty[:0]
	if groups := numbers/groupSize + 1; len(w.at) < groups {
		w.at = make([]uint16, groups)
	}
	clear(w.at)
	for _, g := range f.groups {
		w.alive = append(w.alive, aliveGroup{group: g.group, mask: g.mask})
		w.at[g.group] = uint16(len(w.alive))
	}
}

// gather reads the holders of the next block, whose head is at a place, under its
// shard's lock.
func (w *walk) gather(t *table[uint64], place, hash uint64) {
	v := *t.val(place)
	n := headSource(v)
	w.have(n.group(), uint64(headTiers(v))<<n.shift())
	for place++; ; place++ {
		c, i := t.at(place)
		if c.hash[i] != hash {
			return
		}
		v := c.val[i]
		w.have(groupOf(v), v&groupTiers)
	}
}

func (w *walk) have(group, tiers uint64) {
	if group < uint64(len(w.at)) {
		if at := w.at[group]; at != 0 {
			w.alive[at-1].have |= tiers
		}
	}
}

// spread sets all bits of each source that has one.
func spread(tiers uint64) uint64 {
	t := tiers | tiers>>1
	t |= t >> 2
	return t & firstOfEach * 0xf
}

// step ends the walk for those who don't hold the next block, and goes on with the
// others; false where nobody is left.
func (w *walk) step(r *Result) bool {
	for i := 0; i < len(w.alive); {
		g := &w.alive[i]
		mask := g.mask & spread(g.have)
		if lost := g.mask &^ mask; lost != 0 {
			w.leave(r, g.group, lost)
		}
		if slow := mask & firstOfEach &^ g.have; slow != 0 {
			w.slower(g.group, slow, g.have)
		}
		g.mask, g.have = mask, 0
		if mask != 0 {
			i++
			continue
		}
		w.at[g.group] = 0
		last := len(w.alive) - 1
		if i != last {
			w.alive[i] = w.alive[last]
			w.at[w.alive[i].group] = uint16(i + 1)
		}
		w.alive = w.alive[:last]
	}
	w.blocks++
	return len(w.alive) > 0
}

// slower counts the block for sources that don't have it on the GPU.
func (w *walk) slower(group, sources, have uint64) {
	for ; sources != 0; sources &= sources - 1 {
		at := uint(bits.TrailingZeros64(sources))
		n := number(group*groupSize + uint64(at/Tiers))
		for int(n) >= len(w.slow) {
			w.slow = append(w.slow, make([][Tiers - 1]int32, int(n)+1-len(w.slow))...)
		}
		fastest := bits.TrailingZeros64(have >> at & 0xf)
		if w.slow[n] == ([Tiers - 1]int32{}) {
			w.dirty = append(w.dirty, n)
		}
		w.slow[n][fastest-1]++
	}
}

// leave notes what the sources of a mask hold: the blocks so far.
func (w *walk) leave(r *Result, group, mask uint64) {
	if w.blocks == 0 {
		return
	}
	for sources := mask & firstOfEach; sources != 0; sources &= sources - 1 {
		n := number(group*groupSize + uint64(bits.TrailingZeros64(sources))/Tiers)
		var slower [Tiers - 1]int32
		if int(n) < len(w.slow) {
			slower = w.slow[n]
		}
		size := int32(r.size)
		for t := range slower {
			slower[t] *= size
		}
		r.add(r.view.seats[n], w.blocks*r.size, slower)
	}
}

// end notes what all do that are left.
func (w *walk) end(r *Result) {
	for _, g := range w.alive {
		w.leave(r, g.group, g.mask)
	}
	w.alive = w.alive[:0]
}
