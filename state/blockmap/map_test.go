package blockmap

import (
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
	return m.Learn(s, m.Generation(s), chain, now).Added
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
