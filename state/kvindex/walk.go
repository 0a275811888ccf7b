package kvindex

import "math/bits"

// walk follows a prompt block by block with all sources that hold it so far, 48 of
// them a word. It is scratch that a Result keeps.
type walk struct {
	alive   []aliveGroup
	at      []uint16           // by group: its place in alive, plus one
	lower   []lowerGroup       // who has the next block, and not on the GPU
	last    []uint64           // entries of the block before, where nobody in them is in lower
	slow    [][Tiers - 1]int32 // by number: blocks whose fastest tier is not the GPU
	dirty   []number           // those of slow that are not 0
	blocks  int
	touched uint64
}

// aliveGroup is the sources of a group that hold all blocks so far.
type aliveGroup struct {
	group   uint64
	sources uint64
	have    uint64 // who holds the next block
}

// lowerGroup is sources of a group whose fastest tier for a block is not the GPU.
type lowerGroup struct {
	group   uint64
	sources uint64
	fastest int
}

// begin starts with all sources of a family.
func (w *walk) begin(f *family, numbers int) {
	w.alive, w.lower, w.last, w.blocks = w.alive[:0], w.lower[:0], w.last[:0], 0
	for _, n := range w.dirty {
		w.slow[n] = [Tiers - 1]int32{}
	}
	w.dirty = w.dirty[:0]
	if groups := numbers/groupSize + 1; len(w.at) < groups {
		w.at = make([]uint16, groups)
	}
	clear(w.at)
	for _, g := range f.groups {
		w.alive = append(w.alive, aliveGroup{group: g.group, sources: g.sources})
		w.at[g.group] = uint16(len(w.alive))
	}
}

// again tells whether the next block, whose head is at a place, has the holders of the
// one before, as most blocks of a prompt do: the walk goes on with the same sources then.
// It is called under the lock of the block's shard, as gather.
func (w *walk) again(t *table[uint64], place, hash uint64) bool {
	if len(w.last) == 0 || *t.val(place)&^sampleBoth != w.last[0] {
		return false
	}
	for _, v := range w.last[1:] {
		place++
		if e := t.at(place); e.hash() != hash || e.val != v {
			return false
		}
	}
	if t.hashAt(place+1) == hash {
		return false
	}
	w.blocks++
	return true
}

// gather reads the holders of the next block.
func (w *walk) gather(t *table[uint64], place, hash uint64) {
	v := *t.val(place)
	n := headSource(v)
	w.have(n.group(), n.bit(), headTiers(v))
	w.last = append(w.last[:0], v&^sampleBoth)
	for place++; ; place++ {
		e := t.at(place)
		if e.hash() != hash {
			break
		}
		v := e.val
		w.have(groupOf(v), v&groupSources, groupTiers(v))
		w.last = append(w.last, v)
	}
	if len(w.lower) > 0 {
		w.last = w.last[:0]
	}
}

func (w *walk) have(group, sources uint64, tiers uint8) {
	if group >= uint64(len(w.at)) || w.at[group] == 0 {
		return
	}
	w.alive[w.at[group]-1].have |= sources
	if tiers&(1<<GPU) == 0 {
		w.lower = append(w.lower, lowerGroup{group, sources, bits.TrailingZeros8(tiers)})
	}
}

// step ends the walk for those who don't hold the next block, and goes on with the
// others; false where nobody is left.
func (w *walk) step(r *Result) bool {
	for i := 0; i < len(w.alive); {
		g := &w.alive[i]
		if lost := g.sources &^ g.have; lost != 0 {
			w.leave(r, g.group, lost)
		}
		g.sources, g.have = g.sources&g.have, 0
		if g.sources != 0 {
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
	if len(w.lower) > 0 {
		w.slower()
	}
	w.blocks++
	return len(w.alive) > 0
}

// slower counts the block for those who go on and don't have it on the GPU.
func (w *walk) slower() {
	for _, l := range w.lower {
		at := w.at[l.group]
		if at == 0 {
			continue
		}
		for sources := l.sources & w.alive[at-1].sources; sources != 0; sources &= sources - 1 {
			n := member(l.group, bits.TrailingZeros64(sources))
			for int(n) >= len(w.slow) {
				w.slow = append(w.slow, make([][Tiers - 1]int32, int(n)+1-len(w.slow))...)
			}
			if w.slow[n] == ([Tiers - 1]int32{}) {
				w.dirty = append(w.dirty, n)
			}
			w.slow[n][l.fastest-1]++
		}
	}
	w.lower = w.lower[:0]
}

// leave notes what sources of a group hold: the blocks so far.
func (w *walk) leave(r *Result, group, sources uint64) {
	if w.blocks == 0 {
		return
	}
	for ; sources != 0; sources &= sources - 1 {
		n := member(group, bits.TrailingZeros64(sources))
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
		w.leave(r, g.group, g.sources)
	}
	w.alive = w.alive[:0]
}
