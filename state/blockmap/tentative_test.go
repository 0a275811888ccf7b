package blockmap

import (
	"slices"
	"testing"
	"time"

	"kvca/state"
)

func TestTentativeLocationsCountInExpectedOnly(t *testing.T) {
	m := testMap(t, time.Minute)
	learn(m, 1, []uint64{1, 2}, 0)
	chain := []uint64{1, 2, 3, 4}
	if !m.Expect(2, chain[:3]) || !m.Expect(1, chain) || !m.Expect(1, chain) {
		t.Fatal("not recorded")
	}
	w := walk(m, chain, 0)
	if w.Divergence != 2 || !slices.Equal(w.Replicas, []state.Slot{1}) || w.Matched(1) != 2 || w.Matched(2) != 0 {
		t.Errorf("tentative locations count as learned: %+v", w)
	}
	if w.Expected(1) != 4 || w.Expected(2) != 3 || len(w.Holders()) != 2 {
		t.Errorf("expected %d and %d, want 4 and 3", w.Expected(1), w.Expected(2))
	}
	m.Unexpect(1, chain)
	if w := walk(m, chain, 0); w.Expected(1) != 4 {
		t.Errorf("expected %d while one request is left, want 4", w.Expected(1))
	}
	m.Unexpect(1, chain)
	m.Unexpect(2, chain[:3])
	if w := walk(m, chain, 0); w.Expected(1) != 2 || w.Expected(2) != 0 || len(w.Holders()) != 1 {
		t.Errorf("expected %d and %d after all are back, want 2 and 0", w.Expected(1), w.Expected(2))
	}
	if s := m.Stats(); s.Tentative != 0 || s.Bytes != 2*bytesPerLocation {
		t.Errorf("left are %+v", s)
	}
	ensure(t, m)
}

func TestVoidBetweenExpectAndUnexpectKeepsThePairs(t *testing.T) {
	m := testMap(t, time.Minute)
	long, short := []uint64{1, 2, 3}, []uint64{1, 2}
	m.Expect(1, long)
	m.Expect(2, long)
	m.Void(1)
	if w := walk(m, long, 0); w.Expected(1) != 0 || w.Expected(2) != 3 {
		t.Fatalf("expected %d and %d after void, want 0 and 3", w.Expected(1), w.Expected(2))
	}
	m.Expect(1, short)
	if w := walk(m, long, 0); w.Expected(1) != 2 {
		t.Fatalf("expected %d of the new generation, want 2", w.Expected(1))
	}
	m.Unexpect(1, long)
	if w := walk(m, long, 0); w.Expected(1) != 2 {
		t.Fatalf("expected %d after the old request is back, want 2", w.Expected(1))
	}
	m.Unexpect(1, short)
	m.Unexpect(2, long)
	if s := m.Stats(); s.Tentative != 0 || s.Bytes != 0 {
		t.Fatalf("left are %+v", s)
	}
	ensure(t, m)
}

func TestExpectBeyondItsBoundRecordsNothing(t *testing.T) {
	m, err := New(Config{MaxBytes: MinBytes, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	r := seeded()
	var recorded [][]uint64
	for {
		chain := random(r, 300)
		before := m.Stats()
		if !m.Expect(1, chain) {
			after := m.Stats()
			if after.Tentative != before.Tentative || after.Bytes != before.Bytes || after.ExpectDropped != 1 {
				t.Fatalf("a dropped chain left %+v, before %+v", after, before)
			}
			break
		}
		recorded = append(recorded, chain)
	}
	if s := m.Stats(); s.Bytes > MinBytes/8 || s.Bytes < MinBytes/8*8/10 {
		t.Errorf("at the bound there are %d bytes, the share is %d", s.Bytes, MinBytes/8)
	}
	ensure(t, m)
	for _, chain := range recorded {
		m.Unexpect(1, chain)
	}
	if s := m.Stats(); s.Tentative != 0 || s.Bytes != 0 {
		t.Errorf("left are %+v", s)
	}
	ensure(t, m)
}

// A burst with one prefix is known to be shared before the first answer.
func TestRequestsUnderWayCountAsContinuations(t *testing.T) {
	m := testMap(t, time.Minute)
	chains := [][]uint64{{1, 2, 10}, {1, 2, 11}, {1, 2, 12}, {1, 2}, {1, 20}}
	for i, chain := range chains {
		if !m.Expect(state.Slot(i%2), chain) {
			t.Fatal("no room")
		}
	}
	if w := walk(m, []uint64{1, 2, 10, 100}, 0); !slices.Equal(w.Fan, []uint32{3, 3, 1, 1}) {
		t.Errorf("fan-out is %v while five requests are under way", w.Fan)
	}
	for i, chain := range chains {
		m.Unexpect(state.Slot(i%2), chain)
	}
	if w := walk(m, []uint64{1, 2, 10, 100}, 0); !slices.Equal(w.Fan, []uint32{1, 1, 1, 1}) {
		t.Errorf("fan-out is %v after they have ended", w.Fan)
	}
}
