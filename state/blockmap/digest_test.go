package blockmap

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/state"
)

// keyed names a slot's backend as the cluster does: by something that is the
// same on every node.
func keyed(horizon time.Duration) func(state.Slot) (uint64, time.Duration, bool) {
	return func(s state.Slot) (uint64, time.Duration, bool) {
		return uint64(s)*0x9E3779B97F4A7C15 + 1, horizon, true
	}
}

func digest(m *Map, now time.Duration) *Digest {
	var d Digest
	m.Digest(&d, now, keyed(24*time.Hour))
	return &d
}

// A change of these is a change of what nodes tell each other.
func TestDigestsAreTheSameOnEveryVersion(t *testing.T) {
	for _, c := range []struct {
		hash, key, mark uint64
		bucket          int
	}{
		{0, 0, 0, 0},
		{1, 0, 0xB456BCFC34C2CB2C, 0},
		{0xFEDCBA9876543210, 42, 0x9CF85CC8AC32DB8A, 0xFED},
		{1<<52 - 1, 1, 0x7EB860A026F36E00, 0},
	} {
		if got := Bucket(c.hash); got != c.bucket {
			t.Errorf("bucket of %x is %d, want %d", c.hash, got, c.bucket)
		}
		if got := mark(c.hash, c.key); got != c.mark {
			t.Errorf("mark of %x and %d is %x, want %x", c.hash, c.key, got, c.mark)
		}
	}
}

func TestDigestsAreEqualWhereTheSetsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(nil)
		var all []telling
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			g := x.run(t, func(state.Slot, []uint64) int { return 0 })
			g.r.Idle = min(g.r.Idle, 30*tick)
			all = append(all, g)
		}
		a, b := small(chunkLen, chunkLen), small(chunkLen, chunkLen)
		for _, g := range all {
			merge(a, g.s, g.r, true, 0)
		}
		other := rapid.Permutation(all).Draw(t, "order")
		for _, g := range other[:rapid.IntRange(0, len(all)).Draw(t, "told")] {
			g.r.Idle = 0
			merge(b, g.s, g.r, true, 0)
		}
		diff, n := digest(a, 0).Diff(digest(b, 0))
		if n != diff.Count() || diff.Empty() != (n == 0) {
			t.Fatalf("%d buckets differ, the set has %d", n, diff.Count())
		}
		want := Buckets{}
		inA, inB := locations(a, 0), locations(b, 0)
		for l := range inA {
			if _, ok := inB[l]; !ok {
				want.Set(Bucket(l.hash))
			}
		}
		if diff != want {
			t.Fatalf("buckets %v differ, want %v", diff, want)
		}
	})
}

func TestDigestCountsWhatIsUsedWithinTheHorizonAndNotAboutToEnd(t *testing.T) {
	const ttl = time.Minute
	for _, c := range []struct {
		name    string
		horizon time.Duration
		idle    time.Duration
		counts  bool
	}{
		{"fresh", ttl, 0, true},
		{"within the horizon", 10 * time.Second, 9 * time.Second, true},
		{"beyond the horizon", 10 * time.Second, 11 * time.Second, false},
		{"no horizon", 1<<63 - 1, 54 * time.Second, true},
		{"about to end", ttl, 56 * time.Second, false},
		{"ended", ttl, 70 * time.Second, false},
		{"a horizon of nothing", 0, time.Second, false},
	} {
		m := testMap(t, ttl)
		learn(m, 1, []uint64{1, 2}, 0)
		var got, none Digest
		m.Digest(&got, c.idle, keyed(c.horizon))
		if counts := got != none; counts != c.counts {
			t.Errorf("%s: counts is %v in the digest", c.name, counts)
		}
		paged := 0
		var cur Cursor
		for !m.Page(&cur, 1, nil, c.horizon, c.idle, 1, func(_, _ uint64, idle time.Duration) {
			if paged++; idle > c.idle || idle < c.idle-tick {
				t.Errorf("%s: idle is %v, want %v", c.name, idle, c.idle)
			}
		}) {
		}
		if (paged == 2) != c.counts || paged == 1 {
			t.Errorf("%s: %d are told, counts is %v", c.name, paged, c.counts)
		}
	}
}

func TestDigestLeavesOutWhatIsVoidOrNotAsked(t *testing.T) {
	m := testMap(t, time.Minute)
	learn(m, 1, []uint64{1, 2}, 0)
	want := digest(m, 0)
	learn(m, 2, []uint64{1, 3}, 0)
	var got Digest
	m.Digest(&got, 0, func(s state.Slot) (uint64, time.Duration, bool) {
		key, horizon, _ := keyed(time.Hour)(s)
		return key, horizon, s != 2
	})
	if got != *want {
		t.Error("a slot that is left out counts")
	}
	m.Void(2)
	if *digest(m, 0) != *want {
		t.Error("void locations count")
	}
}

func TestBuckets(t *testing.T) {
	var b Buckets
	if !b.Empty() || b.Count() != 0 || b.Has(4095) {
		t.Error("the zero set is not empty")
	}
	b.Set(0)
	b.Set(4095)
	b.Set(4095)
	if b.Empty() || b.Count() != 2 || !b.Has(0) || !b.Has(4095) || b.Has(1) {
		t.Errorf("set is %v", b)
	}
	if b.All(); b.Count() != 4096 {
		t.Errorf("all are %d", b.Count())
	}
}
