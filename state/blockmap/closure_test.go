package blockmap

import (
	"fmt"
	"testing"
	"time"
)

// checkClosure returns the first location that may outlive the one of the block
// before, where that block isn't marked for it. One that has expired may, since
// a walk that sees it infers nothing from it; and those of a chain that
// repeats a block.
func checkClosure(m *Map, now time.Duration) error {
	places := map[uint32]int{}
	for id := uint32(1); id < m.incs.used; id++ {
		n := 0
		for i := m.incs.at(id).oldest; i != 0; i = m.entries.at(i).newer {
			places[i] = n
			n++
		}
	}
	return eachEntry(m, func(i uint32, e *entry) error {
		block := i
		if e.count == 0 {
			block = e.parent
		}
		p := m.parent(m.entries.at(block))
		if p == 0 || m.incs.at(uint32(e.inc)).dead || expired(e.deadline, uint32(ticks(now))) || m.entries.at(p).version&ragged != 0 {
			return nil
		}
		before := m.find(p, e.inc)
		if before == 0 {
			return fmt.Errorf("incarnation %d holds block %d and not the one before", e.inc, block)
		}
		if places[before] < places[i] || int32(m.entries.at(before).deadline-e.deadline) < 0 {
			return fmt.Errorf("incarnation %d will hold block %d longer than the one before", e.inc, block)
		}
		return nil
	})
}

func ensureClosed(t *testing.T, m *Map, now time.Duration) {
	t.Helper()
	ensure(t, m)
	if err := checkClosure(m, now); err != nil {
		t.Fatal(err)
	}
}

// A repaired block has its parent's deadline and goes before it.
func TestRepairedLeafGoesBeforeItsParent(t *testing.T) {
	m := testMap(t, 100*tick)
	learn(m, 1, []uint64{9}, 0)
	learn(m, 1, []uint64{1}, 10*tick)
	merge(m, 1, Run{Parent: 1, Hashes: []uint64{2}}, false, 10*tick)
	ensureClosed(t, m, 10*tick)
	m.SetMirror(1, 1)
	if w := walk(m, []uint64{1, 2}, 10*tick); w.Matched(1) != 1 {
		t.Errorf("matched %d, want 1", w.Matched(1))
	}
}

func TestRepairBehindAnExpiredParentHidesNoHolder(t *testing.T) {
	m := testMap(t, 100*tick)
	learn(m, 1, []uint64{1}, 0)
	learn(m, 2, []uint64{1}, 90*tick)
	merge(m, 1, Run{Parent: 1, Hashes: []uint64{2}}, false, 110*tick)
	m.Vacuum(110*tick, 10)
	if w := walk(m, []uint64{1, 2}, 110*tick); w.Matched(2) != 1 {
		t.Errorf("matched %d, want 1", w.Matched(2))
	}
	ensureClosed(t, m, 110*tick)
}

// News that is later than what was learned here since has no place nearby; its
// ancestors still go after it.
func TestAncestorsOfLateNewsGoAfterIt(t *testing.T) {
	m := testMap(t, 100*tick)
	m.steps = 1
	learn(m, 1, []uint64{9}, 0)
	learn(m, 1, []uint64{20, 21, 22}, 10*tick)
	merge(m, 1, Run{Hashes: []uint64{1}, Idle: 5 * tick}, true, 10*tick)
	learn(m, 1, []uint64{30, 31, 32}, 12*tick)
	merge(m, 1, Run{Parent: 1, Hashes: []uint64{2}, Idle: 8 * tick}, true, 12*tick)
	ensureClosed(t, m, 12*tick)
	m.SetMirror(1, 1)
	if w := walk(m, []uint64{1, 2}, 12*tick); w.Matched(1) != 1 {
		t.Errorf("matched %d, want 1", w.Matched(1))
	}
}
