package blockmap

import (
	"slices"
	"testing"
	"time"

	"kvca/state"
)

func merge(m *Map, s state.Slot, r Run, extend bool, now time.Duration) int {
	return m.Merge(s, m.Generation(s), r, extend, now)
}

func TestMergedNewsRefreshesWhatIsBeforeIt(t *testing.T) {
	m := testMap(t, 100*tick)
	chain := random(seeded(), 300)
	learn(m, 1, chain, 0)
	learn(m, 2, chain[:10], 0)
	if n := merge(m, 1, Run{Parent: chain[198], Hashes: chain[199:200], Idle: 5 * tick}, true, 60*tick); n != 0 {
		t.Errorf("a refresh added %d", n)
	}
	ensure(t, m)
	if w := walk(m, chain, 154*tick); w.Matched(1) != 200 || w.Matched(2) != 0 {
		t.Errorf("matched %d and %d, want 200 and 0", w.Matched(1), w.Matched(2))
	}
	if w := walk(m, chain, 155*tick); w.Divergence != 0 {
		t.Errorf("diverges at %d after the end", w.Divergence)
	}
}

func TestMergedRepairRefreshesNothing(t *testing.T) {
	m := testMap(t, 100*tick)
	chain := random(seeded(), 300)
	learn(m, 1, chain[:200], 0)
	if n := merge(m, 1, Run{Parent: chain[99], Hashes: chain[100:]}, false, 50*tick); n != 100 {
		t.Errorf("added %d, want 100", n)
	}
	ensure(t, m)
	if w := walk(m, chain, 99*tick); w.Matched(1) != 300 {
		t.Errorf("matched %d, want 300", w.Matched(1))
	}
	if n, _ := m.Vacuum(100*tick, 1000); n != 300 {
		t.Errorf("%d have ended, want all 300: none outlives its parent", n)
	}
}

func TestMergeOfAnotherGenerationDoesNothing(t *testing.T) {
	m := testMap(t, time.Minute)
	for _, extend := range []bool{true, false} {
		if n := m.Merge(1, 1, Run{Hashes: []uint64{1, 2}}, extend, 0); n != 0 || m.Stats().Locations != 0 {
			t.Errorf("added %d, left %+v", n, m.Stats())
		}
	}
}

func TestMergeOfWhatHasExpiredOnItsWayDoesNothing(t *testing.T) {
	m := testMap(t, 100*tick)
	for _, extend := range []bool{true, false} {
		r := Run{Hashes: []uint64{1, 2}, Idle: 99*tick + 1}
		if n := merge(m, 1, r, extend, 0); n != 0 || m.Stats().Locations != 0 {
			t.Errorf("added %d, left %+v", n, m.Stats())
		}
		r.Idle = 99 * tick
		if n := merge(m, 1, r, extend, 0); n != 2 {
			t.Errorf("added %d of what has a tick left", n)
		}
		m.Void(1)
		m.Vacuum(0, 10)
	}
}

func TestBlocksBeforeTheirParentsAreAdoptedLater(t *testing.T) {
	m := testMap(t, time.Minute)
	chain := random(seeded(), 9)
	for _, extend := range []bool{true, false} {
		merge(m, 1, Run{Parent: chain[5], Hashes: chain[6:]}, extend, 0)
		merge(m, 1, Run{Parent: chain[2], Hashes: chain[3:6]}, extend, 0)
		ensure(t, m)
		if w := walk(m, chain, 0); w.Divergence != 0 {
			t.Errorf("diverges at %d without a root", w.Divergence)
		}
		merge(m, 1, Run{Hashes: chain[:3]}, extend, 0)
		if w := walk(m, chain, 0); w.Matched(1) != 9 {
			t.Errorf("matched %d, want 9", w.Matched(1))
		}
		learn(m, 1, chain, 0)
		merge(m, 2, Run{Hashes: []uint64{chain[0], chain[1], 7}}, extend, 0)
		if w := walk(m, chain, 0); !slices.Equal(w.Fan, []uint32{2, 2, 1, 1, 1, 1, 1, 1, 1}) {
			t.Errorf("fan-out is %v", w.Fan)
		}
		ensure(t, m)
		m.Void(1)
		m.Void(2)
		m.Vacuum(0, 100)
	}
}

func TestRepairStopsAtNineTenthsOfTheMap(t *testing.T) {
	m := newMap(Config{MaxBytes: MinBytes, TTL: time.Minute}, 1001, chunkLen)
	r := seeded()
	learn(m, 1, random(r, 800), 0)
	if n := merge(m, 1, Run{Hashes: random(r, 300)}, false, 0); n != 100 {
		t.Errorf("added %d, want 100", n)
	}
	if n := merge(m, 1, Run{Hashes: random(r, 300)}, true, 0); n != 300 || m.Stats().Evicted == 0 {
		t.Errorf("news added %d, want all", n)
	}
	ensure(t, m)
}

func TestRepairAddsNothingThatAFullMirrorWouldEvict(t *testing.T) {
	m := testMap(t, time.Minute)
	r := seeded()
	m.SetMirror(1, 50)
	learn(m, 1, random(r, 50), 10*tick)
	for idle, want := range map[time.Duration]int{2 * tick: 0, tick: 0, 0: 3} {
		if n := merge(m, 1, Run{Hashes: random(r, 3), Idle: idle}, false, 11*tick); n != want || m.Held(1) != 50 {
			t.Errorf("added %d of what is idle for %v, want %d, %d are held", n, idle, want, m.Held(1))
		}
	}
	ensure(t, m)
}
