package engine

import "math/bits"

// table finds a block of the pool by the hash of its content: open addressing with linear probing, at most half full. A long
// simulation does little else than ask it, and the runtime's map takes more than twice as long for that.
type table struct {
	cells []cell
	count int
	shift int // a hash's home is in its product's upper bits
}

// cell holds a block's number plus one, so that a new cell is free.
type cell struct {
	hash  uint64
	block int32
}

const leastCells = 64

// home is where a hash would be if it were alone. Multiplying spreads hashes that tell blocks apart by their lower bits only.
func (t *table) home(hash uint64) int { return int(hash * 0x9e3779b97f4a7c15 >> t.shift) }

// at is the place of a hash, or the free one where it would go. There is a free one always.
func (t *table) at(hash uint64) int {
	i := t.home(hash)
	for t.cells[i].block != 0 && t.cells[i].hash != hash {
		i = (i + 1) & (len(t.cells) - 1)
	}
	return i
}

func (t *table) get(hash uint64) (block int32, ok bool) {
	if t.count == 0 {
		return none, false
	}
	block = t.cells[t.at(hash)].block - 1
	return block, block != none
}

// put adds a hash that is not there.
func (t *table) put(hash uint64, block int32) {
	if 2*(t.count+1) > len(t.cells) {
		t.grow()
	}
	t.cells[t.at(hash)] = cell{hash, block + 1}
	t.count++
}

func (t *table) grow() {
	old := t.cells
	t.cells = make([]cell, max(2*len(old), leastCells))
	t.shift = 64 - bits.TrailingZeros(uint(len(t.cells)))
	for _, c := range old {
		if c.block != 0 {
			t.cells[t.at(c.hash)] = c
		}
	}
}

// remove takes a hash out that is there, and closes the gap: what was pushed on by it moves back.
func (t *table) remove(hash uint64) {
	last := len(t.cells) - 1
	gap := t.at(hash)
	for i := (gap + 1) & last; t.cells[i].block != 0; i = (i + 1) & last {
		if (i-t.home(t.cells[i].hash))&last >= (i-gap)&last {
			t.cells[gap] = t.cells[i]
			gap = i
		}
	}
	t.cells[gap] = cell{}
	t.count--
}

func (t *table) clear() {
	clear(t.cells)
	t.count = 0
}
