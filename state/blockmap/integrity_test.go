package blockmap

import (
	"fmt"
	"testing"
	"unsafe"

	"kvca/state"
)

func TestSizesAreWhatTheBoundAssumes(t *testing.T) {
	if n := unsafe.Sizeof(entry{}) + 4; n != bytesPerLocation {
		t.Errorf("a location takes %d bytes, the bound assumes %d", n, bytesPerLocation)
	}
	if n := unsafe.Sizeof(awaitedPair{}) + 4; n != bytesPerPair {
		t.Errorf("a tentative pair takes %d bytes, the bound assumes %d", n, bytesPerPair)
	}
	if n := unsafe.Sizeof(awaitedBlock{}) + 4; n != bytesPerAwaited {
		t.Errorf("a tentative block takes %d bytes, the bound assumes %d", n, bytesPerAwaited)
	}
}

// check returns the first broken invariant of the map's lists and counts.
func check(m *Map) error {
	for _, f := range []func(*Map) error{checkIndex, checkBlocks, checkLists, checkHeap, checkFree, checkTentative} {
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// eachEntry visits the entries of the index, which are all in use.
func eachEntry(m *Map, f func(i uint32, e *entry) error) error {
	for b := range m.index.heads.used {
		for i := *m.index.heads.at(b); i != 0; i = m.entries.at(i).chain {
			if err := f(i, m.entries.at(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkIndex(m *Map) error {
	seen, blocks := map[uint32]bool{}, map[uint64]bool{}
	for b := range m.index.heads.used {
		for i := *m.index.heads.at(b); i != 0; i = m.entries.at(i).chain {
			e := m.entries.at(i)
			if seen[i] {
				return fmt.Errorf("entry %d is in the index twice", i)
			}
			seen[i] = true
			if m.index.bucket(uint32(e.hash)) != b {
				return fmt.Errorf("entry %d is in bucket %d", i, b)
			}
			if e.count > 0 {
				if blocks[e.hash] {
					return fmt.Errorf("block %x is there twice", e.hash)
				}
				blocks[e.hash] = true
			}
		}
	}
	if len(seen) != m.locations || len(blocks) != m.blocks {
		return fmt.Errorf("index has %d locations of %d blocks, counted are %d of %d", len(seen), len(blocks), m.locations, m.blocks)
	}
	if m.locations > m.capacity() {
		return fmt.Errorf("%d locations, capacity is %d", m.locations, m.capacity())
	}
	return nil
}

func checkBlocks(m *Map) error {
	fan := map[uint32]uint16{}
	err := eachEntry(m, func(i uint32, e *entry) error {
		if e.count == 0 {
			if b := m.entries.at(e.parent); b.count < 2 || uint32(e.hash) != furtherKey(b.hash, e.inc) {
				return fmt.Errorf("further location %d has no block", i)
			}
			return nil
		}
		if p := m.parent(e); p != 0 {
			fan[p]++
		}
		incs, previous := map[uint16]bool{e.inc: true}, uint32(0)
		for j := e.more; j != 0; j = m.entries.at(j).more {
			f := m.entries.at(j)
			if f.parent != i || f.previous() != previous || incs[f.inc] || m.find(i, f.inc) != j {
				return fmt.Errorf("further location %d of block %d is wrong", j, i)
			}
			incs[f.inc], previous = true, j
		}
		if len(incs) != int(e.count) {
			return fmt.Errorf("block %d has %d locations, counted are %d", i, len(incs), e.count)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachEntry(m, func(i uint32, e *entry) error {
		if e.count > 0 && e.fan != fan[i] {
			return fmt.Errorf("block %d has fan-out %d, counted are %d", i, e.fan, fan[i])
		}
		return nil
	})
}

func checkLists(m *Map) error {
	total := 0
	for id := uint32(1); id < m.incs.used; id++ {
		in := m.incs.at(id)
		n, last := uint32(0), uint32(0)
		for i := in.oldest; i != 0; i = m.entries.at(i).newer {
			e := m.entries.at(i)
			if uint32(e.inc) != id || e.older != last {
				return fmt.Errorf("list of incarnation %d is broken at %d", id, i)
			}
			if last != 0 && !in.loose && before(e.deadline, m.entries.at(last).deadline) {
				return fmt.Errorf("list of incarnation %d is out of order at %d", id, i)
			}
			last = i
			n++
		}
		if n != in.count || last != in.newest {
			return fmt.Errorf("incarnation %d has %d locations, counted are %d", id, n, in.count)
		}
		if in.dead && n == 0 {
			return fmt.Errorf("incarnation %d is dead and empty", id)
		}
		total += int(n)
	}
	if total != m.locations {
		return fmt.Errorf("lists have %d locations, counted are %d", total, m.locations)
	}
	return nil
}

func checkHeap(m *Map) error {
	h := m.soonest.heap
	in := map[uint16]bool{}
	for at := 1; at < len(h); at++ {
		x := m.incs.at(uint32(h[at]))
		if x.at != uint32(at) || x.count == 0 || !x.loose && before(m.entries.at(x.oldest).deadline, x.key) {
			return fmt.Errorf("heap is wrong at %d", at)
		}
		if at > 1 && before(x.key, m.incs.at(uint32(h[at/2])).key) {
			return fmt.Errorf("heap is out of order at %d", at)
		}
		in[h[at]] = true
	}
	for id := uint32(1); id < m.incs.used; id++ {
		if m.incs.at(id).count > 0 && !in[uint16(id)] {
			return fmt.Errorf("incarnation %d is not in the heap", id)
		}
	}
	return nil
}

func checkFree(m *Map) error {
	n := 0
	for i := m.free; i != 0; i = m.entries.at(i).newer {
		n++
	}
	if used := int(m.entries.used) - 1; n+m.locations != used {
		return fmt.Errorf("%d entries are free and %d in use, of %d", n, m.locations, used)
	}
	for s := range state.Slot(m.slots.top.Load()) {
		if st := m.slots.get(s); st != nil && st.inc != 0 && m.incs.at(uint32(st.inc)).slot != s {
			return fmt.Errorf("slot %d has another's incarnation", s)
		}
	}
	return nil
}

func checkTentative(m *Map) error {
	t := &m.tentative
	pairs, blocks := uint32(0), uint32(0)
	for b := range t.byHash.heads.used {
		for i := *t.byHash.heads.at(b); i != 0; i = t.blocks.at(i).chain {
			blocks++
			x, n, previous := t.blocks.at(i), uint32(0), uint32(0)
			for j := x.pairs; j != 0; j = t.pairs.at(j).next {
				p := t.pairs.at(j)
				if p.block != i || p.previous != previous || t.find(i, p.slot) != j || p.live+p.stale == 0 {
					return fmt.Errorf("tentative pair %d of block %d is wrong", j, i)
				}
				previous = j
				n++
			}
			if n == 0 || n != x.count {
				return fmt.Errorf("tentative block %d has %d pairs, counted are %d", i, n, x.count)
			}
			pairs += n
		}
	}
	if pairs != t.inUse || blocks != t.inUseBl || int64(pairs) != t.count.Load() {
		return fmt.Errorf("%d tentative pairs of %d blocks, counted are %d of %d", pairs, blocks, t.inUse, t.inUseBl)
	}
	return nil
}
