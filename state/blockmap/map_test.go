package blockmap

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kvca/state"
)

const tick = time.Duration(1) << tickBits

func testMap(t testing.TB, ttl time.Duration) *Map {
	t.Helper()
	m, err := New(Config{MaxBytes: 8 << 20, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// random makes a chain that shares no block with another.
func random(r *rand.Rand, n int) []uint64 {
	chain := make([]uint64, n)
	for i := range chain {
		chain[i] = r.Uint64()
	}
	return chain
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func learn(m *Map, s state.Slot, chain []uint64, now time.Duration) int {
	return m.Learn(s, m.Generation(s), chain, now)
}

func walk(m *Map, chain []uint64, now time.Duration) *Walk {
	var w Walk
	m.Walk(chain, now, &w)
	return &w
}

func ensure(t testing.TB, m *Map) {
	t.Helper()
	if err := check(m); err != nil {
		t.Fatal(err)
	}
}

func TestConfigFaultsAreAllNamed(t *testing.T) {
	_, err := New(Config{MaxBytes: 1, TTL: -time.Second})
	if err == nil || !strings.Contains(err.Error(), "MaxBytes") || !strings.Contains(err.Error(), "TTL") {
		t.Fatalf("got %v", err)
	}
}

func TestUnknownChainDivergesAtItsRoot(t *testing.T) {
	m := testMap(t, time.Minute)
	w := walk(m, []uint64{1, 2, 3}, 0)
	if w.Divergence != 0 || len(w.Replicas) != 0 || len(w.Holders()) != 0 || !slices.Equal(w.Fan, []uint32{1, 1, 1}) {
		t.Fatalf("got %+v", w)
	}
	if w := walk(m, nil, 0); w.Divergence != 0 || len(w.Fan) != 0 {
		t.Fatalf("empty chain: got %+v", w)
	}
}

func TestWalkTellsDivergenceReplicasAndDepths(t *testing.T) {
	m := testMap(t, time.Minute)
	if n := learn(m, 1, []uint64{10, 11, 12}, 0); n != 3 {
		t.Fatalf("added %d, want 3", n)
	}
	if n := learn(m, 2, []uint64{10, 11}, 0); n != 2 {
		t.Fatalf("added %d, want 2", n)
	}
	if n := learn(m, 2, []uint64{10, 11}, tick); n != 0 {
		t.Fatalf("a refresh added %d", n)
	}
	learn(m, 900, []uint64{10}, 0)
	w := walk(m, []uint64{10, 11, 12, 13}, tick)
	if w.Divergence != 3 || !slices.Equal(w.Replicas, []state.Slot{1}) {
		t.Fatalf("diverges at %d from %v, want 3 from [1]", w.Divergence, w.Replicas)
	}
	for s, want := range map[state.Slot]int{1: 3, 2: 2, 900: 1, 0: 0, 5000: 0} {
		if got := w.Matched(s); got != want {
			t.Errorf("slot %d matches %d, want %d", s, got, want)
		}
		if got := w.Expected(s); got != want {
			t.Errorf("slot %d is expected to match %d, want %d", s, got, want)
		}
	}
	if got := slices.Sorted(slices.Values(w.Holders())); !slices.Equal(got, []state.Slot{1, 2, 900}) {
		t.Errorf("holders are %v", got)
	}
	ensure(t, m)
}

func TestFanOutCountsDistinctKnownChildren(t *testing.T) {
	m := testMap(t, time.Minute)
	for s := range state.Slot(2) {
		for leaf := range uint64(5) {
			learn(m, s, []uint64{1, 2, 100 + leaf}, 0)
		}
	}
	learn(m, 0, []uint64{1, 3}, 0)
	if w := walk(m, []uint64{1, 2, 100, 200}, 0); !slices.Equal(w.Fan, []uint32{5, 5, 1, 1}) {
		t.Errorf("fan-out is %v", w.Fan)
	}
	if w := walk(m, []uint64{1, 3, 300}, 0); !slices.Equal(w.Fan, []uint32{2, 1, 1}) {
		t.Errorf("fan-out is %v", w.Fan)
	}
	m.Forget(0, []uint64{1, 2, 104}, 2)
	m.Forget(1, []uint64{1, 2, 104}, 2)
	if w := walk(m, []uint64{1, 2}, 0); !slices.Equal(w.Fan, []uint32{4, 4}) {
		t.Errorf("fan-out is %v after a child has gone", w.Fan)
	}
	ensure(t, m)
}

func TestLocationExpiresAfterItsTTL(t *testing.T) {
	m := testMap(t, 100*tick)
	learn(m, 1, []uint64{1, 2}, 0)
	learn(m, 1, []uint64{1, 3}, 50*tick) // refreshes 1
	if w := walk(m, []uint64{1, 2}, 99*tick); w.Divergence != 2 {
		t.Errorf("before its deadline: diverges at %d", w.Divergence)
	}
	if at, ok := m.NextDeadline(); !ok || at != 100*tick {
		t.Errorf("next deadline is %v, %v", at, ok)
	}
	if w := walk(m, []uint64{1, 2}, 100*tick); w.Divergence != 1 || w.Matched(1) != 1 {
		t.Errorf("at its deadline: diverges at %d", w.Divergence)
	}
	if n, more := m.Vacuum(100*tick, 10); n != 1 || more {
		t.Errorf("vacuum removed %d, %v", n, more)
	}
	if at, ok := m.NextDeadline(); !ok || at != 150*tick {
		t.Errorf("next deadline is %v, %v", at, ok)
	}
	if n, more := m.Vacuum(150*tick, 1); n != 1 || !more {
		t.Errorf("limited vacuum removed %d, %v", n, more)
	}
	if n, more := m.Vacuum(150*tick, 1); n != 1 || more {
		t.Errorf("limited vacuum removed %d, %v", n, more)
	}
	if _, ok := m.NextDeadline(); ok {
		t.Error("an empty map has a deadline")
	}
	if s := m.Stats(); s.Blocks != 0 || s.Locations != 0 || s.Bytes != 0 || s.Expired != 3 {
		t.Errorf("left are %+v", s)
	}
	ensure(t, m)
}

// A backend whose deep block has expired still holds the refreshed ones before
// it, also where as many backends hold either.
func TestExpiredLeafDoesNotHideTheRefreshedPrefix(t *testing.T) {
	m := testMap(t, 100*tick)
	learn(m, 1, []uint64{1, 2, 3}, 0)
	learn(m, 2, []uint64{1, 2, 3}, 50*tick)
	learn(m, 1, []uint64{1}, 50*tick)
	w := walk(m, []uint64{1, 2, 3}, 120*tick)
	if w.Matched(1) != 1 || w.Matched(2) != 3 {
		t.Fatalf("matched %d and %d, want 1 and 3", w.Matched(1), w.Matched(2))
	}
}

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
	if n := m.Learn(1, 0, chain, 0); n != 0 {
		t.Fatalf("learned %d locations of an old generation", n)
	}
	if n := m.Learn(1, 1, chain[:20], 0); n != 20 {
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

func TestForgetDropsTheRestOfAChain(t *testing.T) {
	m := testMap(t, time.Minute)
	chain := random(seeded(), 700)
	learn(m, 1, chain, 0)
	learn(m, 2, chain, 0)
	m.Forget(1, chain, 100)
	if w := walk(m, chain, 0); w.Matched(1) != 100 || w.Matched(2) != 700 {
		t.Errorf("matched %d and %d, want 100 and 700", w.Matched(1), w.Matched(2))
	}
	m.Forget(2, chain, 0)
	if w := walk(m, chain, 0); w.Divergence != 100 {
		t.Errorf("diverges at %d, want 100", w.Divergence)
	}
	m.Forget(3, chain, 0)
	m.Forget(1, chain, 9999)
	m.Forget(1, chain, -1)
	if s := m.Stats(); s.Locations != 0 || s.Blocks != 0 {
		t.Errorf("left are %+v", s)
	}
	ensure(t, m)
}

// Forget may take a prefix away under a branch that stays. Then the backends
// that do hold the prefix must still be found.
func TestForgottenPrefixDoesNotHideItsOtherHolders(t *testing.T) {
	m := testMap(t, time.Minute)
	learn(m, 1, []uint64{1, 2}, 0)
	learn(m, 3, []uint64{1}, 0)
	m.Forget(1, []uint64{1, 9}, 0)
	if w := walk(m, []uint64{1, 2}, 0); w.Matched(3) != 1 {
		t.Errorf("matched %d, want 1", w.Matched(3))
	}
	m.Forget(3, []uint64{1}, 0) // now 2 has no parent
	learn(m, 3, []uint64{1}, 0) // and this is another
	learn(m, 4, []uint64{1, 5}, 0)
	learn(m, 1, []uint64{1, 2}, 0)
	m.Forget(1, []uint64{1}, 0)
	m.Forget(4, []uint64{1}, 0)
	if w := walk(m, []uint64{1, 2}, 0); w.Matched(3) != 1 {
		t.Errorf("matched %d, want 1", w.Matched(3))
	}
	ensure(t, m)
}

func TestLongChainsAreLearnedAndForgottenWhole(t *testing.T) {
	m := testMap(t, time.Minute)
	chain := random(seeded(), 5000)
	if n := learn(m, 1, chain, 0); n != 5000 {
		t.Fatalf("added %d", n)
	}
	w := walk(m, append(slices.Clone(chain), 1), 0)
	if w.Divergence != 5000 || w.Matched(1) != 5000 || w.Fan[0] != 1 {
		t.Fatalf("diverges at %d", w.Divergence)
	}
	if err := eachEntry(m, func(i uint32, e *entry) error {
		if e.hash != chain[0] && m.parent(e) == 0 {
			return errors.New("a block has no parent")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	m.SetMirror(1, 3000)
	if w := walk(m, chain, 0); w.Matched(1) != 3000 {
		t.Fatalf("matched %d after shrinking, want 3000", w.Matched(1))
	}
	ensure(t, m)
}

func TestChainThatRepeatsABlockBreaksNothing(t *testing.T) {
	m := testMap(t, 10*tick)
	chain := []uint64{1, 1, 2, 1, 0, 2, 0}
	learn(m, 1, chain, 0)
	learn(m, 2, chain, 0)
	if !m.Expect(1, chain) {
		t.Fatal("not recorded")
	}
	if w := walk(m, chain, 0); w.Divergence != len(chain) || len(w.Replicas) != 2 || len(w.Holders()) != 2 {
		t.Errorf("got %+v", w)
	}
	ensure(t, m)
	m.Forget(1, chain, 2)
	m.Unexpect(1, chain)
	ensure(t, m)
	m.Vacuum(10*tick, 100)
	if s := m.Stats(); s.Bytes != 0 {
		t.Errorf("left are %+v", s)
	}
	ensure(t, m)
}

// Two callers may read the clock in one order and come here in the other.
func TestLearningWithAnEarlierTimeKeepsTheOrderOfDeadlines(t *testing.T) {
	m := testMap(t, 100*tick)
	learn(m, 1, []uint64{1, 2}, 10*tick)
	learn(m, 1, []uint64{1, 3}, 5*tick)
	ensure(t, m)
	if at, ok := m.NextDeadline(); !ok || at != 110*tick {
		t.Errorf("next deadline is %v, %v", at, ok)
	}
	if n, _ := m.Vacuum(110*tick, 10); n != 3 {
		t.Errorf("vacuum removed %d, want 3", n)
	}
}
