package blockmap

import (
	"testing"
	"time"
)

func TestVoidForgetsABackendAtOnce(t *testing.T) {
	m := testMap(t, time.Minute)
	r := seeded()
	chain := random(r, 1000)
	learn(m, 1, chain, 0)
	learn(m, 2, chain[:10], 0)
	m.Void(1)
	if m.Generation(1) != 1 || m.Generation(2) != 0 {
		t.Fatalf("generations are %d and %d", m.Generation(1), m.Generation(2))
	}
	if w := walk(m, chain, 0); w.Divergence != 10 || w.Matched(1) != 0 || w.Matched(2) != 10 || m.Held(1) != 0 {
		t.Fatalf("after void: diverges at %d, matched %d", w.Divergence, w.Matched(1))
	}
	if n := m.Learn(1, 0, chain, 0); n != (News{}) {
		t.Fatalf("learned %+v of an old generation", n)
	}
	if n := m.Learn(1, 1, chain[:20], 0).Added; n != 20 {
		t.Fatalf("learned %d, want 20", n)
	}
	if at, ok := m.NextDeadline(); !ok || at != 0 {
		t.Fatalf("void locations are due at %v, %v", at, ok)
	}
	if n, more := m.Vacuum(0, 700); n != 700 || !more {
		t.Fatalf("vacuum removed %d, %v", n, more)
	}
	ensure(t, m)
	if n, more := m.Vacuum(0, 700); n != 300 || more {
		t.Fatalf("vacuum removed %d, %v", n, more)
	}
	if s := m.Stats(); s.Locations != 30 || s.Blocks != 20 || s.Voided != 1000 {
		t.Fatalf("left are %+v", s)
	}
	ensure(t, m)
}

func TestVoidsBeyondTheIncarnationsThereAre(t *testing.T) {
	m := testMap(t, time.Minute)
	for i := range uint64(70_000) {
		if n := learn(m, 1, []uint64{i + 1}, 0); n != 1 {
			t.Fatalf("learned %d locations after %d voids", n, i)
		}
		m.Void(1)
	}
	ensure(t, m)
	m.Vacuum(0, 1<<30)
	if s := m.Stats(); s.Locations != 0 {
		t.Fatalf("left are %+v", s)
	}
}

func TestMirrorEvictsLeastRecentlyUsedLeafFirst(t *testing.T) {
	m := testMap(t, time.Minute)
	m.SetMirror(1, 4)
	learn(m, 1, []uint64{1, 2, 3}, 0)
	if _, full := m.Age(1, 0); full {
		t.Error("a mirror with room is full")
	}
	learn(m, 1, []uint64{1, 4, 5}, 10*tick)
	if w := walk(m, []uint64{1, 2, 3}, 10*tick); w.Matched(1) != 2 {
		t.Errorf("matched %d of the older chain, want 2", w.Matched(1))
	}
	if age, full := m.Age(1, 30*tick); !full || age != 30*tick {
		t.Errorf("age is %v, %v, want that of block 2", age, full)
	}
	learn(m, 1, []uint64{6, 7, 8, 9, 10, 11}, 20*tick)
	if w := walk(m, []uint64{6, 7, 8, 9, 10, 11}, 20*tick); w.Matched(1) != 4 || m.Held(1) != 4 {
		t.Errorf("matched %d of a chain longer than the mirror, want 4", w.Matched(1))
	}
	m.SetMirror(1, 1)
	if w := walk(m, []uint64{6, 7}, 20*tick); w.Matched(1) != 1 || m.Held(1) != 1 {
		t.Errorf("matched %d after shrinking, want 1", w.Matched(1))
	}
	m.SetMirror(1, 0)
	if _, full := m.Age(1, 0); full {
		t.Error("an unbounded mirror is full")
	}
	if _, full := m.Age(7, 0); full {
		t.Error("an unknown backend is full")
	}
	ensure(t, m)
}
