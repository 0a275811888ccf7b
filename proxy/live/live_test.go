package live

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"kvca/proxy/record"
	"kvca/router"
	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newLive() (*Live, *clock) {
	c := &clock{time.Unix(1_764_000_000, 0)}
	return New(Config{Now: c.now}), c
}

func sampleRecord() *record.Record {
	return &record.Record{
		ID: "req-1", Endpoint: "/v1/chat/completions", Model: "m", Tenant: "t", Status: 200, Attempts: 1,
		FirstByte: 50 * time.Millisecond, Duration: time.Second, PromptTokens: 100, CachedTokens: 60, OutputTokens: 10,
		Decision: &router.Decision{Reason: router.ReasonHit, Backend: "b", ChainBlocks: 4, MatchedBlocks: 3},
	}
}

func TestASecondCountsWhatEndedInIt(t *testing.T) {
	l, c := newLive()
	l.Ended(sampleRecord())
	silent := sampleRecord()
	silent.CachedTokens, silent.Status, silent.FirstByte, silent.Decision = -1, 503, 0, nil
	l.Ended(silent)
	left := sampleRecord()
	left.Status, left.Decision.Reason, left.Decision.Degraded = 499, router.ReasonMiss, true
	l.Ended(left)
	c.at = c.at.Add(time.Second)
	l.Ended(sampleRecord())

	var s second
	if !l.second(c.at.Unix()-1, &s) {
		t.Fatal("the second is gone")
	}
	got := s.traffic()
	if got.P50 == nil || *got.P50 < 46 || *got.P50 > 54 {
		t.Errorf("p50 = %v, want about 50 ms", got.P50)
	}
	got.P50, got.P90 = nil, nil
	want := Traffic{
		Requests: 3, Errors: 1, Refused: 1, Degraded: 1, PromptTokens: 200, CachedTokens: 120, OutputTokens: 30,
		Reasons: map[string]uint32{"hit": 1, "miss": 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if newest := l.newestDecision(); newest != 3 {
		t.Errorf("%d decisions, want 3: a request without one has none", newest)
	}
}

// TestSecondsAreAsIfNoneWereEverDropped compares the ring with a map that keeps
// everything, while the clock jumps.
func TestSecondsAreAsIfNoneWereEverDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ring seconds
		all := map[int64]uint32{}
		newest, at := int64(0), int64(1_764_000_000)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			at = max(at+rapid.Int64Range(-700, 700).Draw(t, "jump"), -3)
			if at <= newest-window {
				clear(all)
				newest = 0
			}
			newest = max(newest, at, 1)
			all[newest]++
			ring.now(at).requests++
		}
		var b second
		for s := newest - window - 2; s <= newest+2; s++ {
			had := ring.get(s, &b)
			want := all[s]
			if s <= newest-window {
				want = 0
			}
			if had != (want > 0) || had && b.requests != want {
				t.Fatalf("second %d of %d: %v, %d requests, want %d", s, newest, had, b.requests, want)
			}
		}
	})
}

func TestQuantilesAreWithinASixteenth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, half, other spread
		list := rapid.SliceOfN(rapid.Int64Range(128, 1_000_000_000), 1, 200).Draw(t, "microseconds")
		for i, us := range list {
			d := time.Duration(us) * time.Microsecond
			whole.add(d)
			[]*spread{&half, &other}[i%2].add(d)
		}
		half.merge(&other)
		if half != whole {
			t.Fatal("two halves are not the whole")
		}
		slices.Sort(list)
		q := rapid.Float64Range(.01, 1).Draw(t, "q")
		rank := int(q * float64(len(list)))
		if float64(rank) == q*float64(len(list)) {
			rank--
		}
		want, got := float64(list[max(rank, 0)]), float64(whole.quantile(q).Microseconds())
		if got < want*(1-1./15) || got > want*(1+1./15) {
			t.Fatalf("quantile %v of %v: %v us, want %v", q, list, got, want)
		}
	})
}

func TestDurationsBeyondTheBinsAreInTheOuterOnes(t *testing.T) {
	for d, want := range map[time.Duration]int{-time.Second: 0, 0: 0, time.Microsecond: 0, 1000 * time.Hour: binCount - 1} {
		if got := binOf(d); got != want {
			t.Errorf("%v is in bin %d, want %d", d, got, want)
		}
	}
	if got := new(spread).quantile(.5); got != 0 {
		t.Errorf("a quantile of nothing is %v", got)
	}
}

func TestTheLastDecisionsAreKeptAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, _ := newLive()
		n := rapid.IntRange(1, 2*keptDecisions).Draw(t, "requests")
		r := sampleRecord() // used again and again, as a proxy may
		wide := rapid.IntRange(0, 2*keptCandidates).Draw(t, "candidates")
		chosen := rapid.IntRange(0, max(wide-1, 0)).Draw(t, "chosen")
		r.Decision.Backend = fmt.Sprint("b", chosen)
		for c := range wide {
			r.Decision.Candidates = append(r.Decision.Candidates, router.Candidate{Backend: fmt.Sprint("b", c)})
		}
		for i := range n {
			r.ID = fmt.Sprint("req-", i+1)
			for c := range r.Decision.Candidates {
				r.Decision.Candidates[c].MatchedBlocks = i
			}
			l.Ended(r)
		}
		clear(r.Decision.Candidates)
		var k Decision
		for seq := range uint64(n + 2) {
			kept := l.decision(seq, true, &k)
			if want := seq > 0 && seq <= uint64(n) && seq+keptDecisions > uint64(n); kept != want {
				t.Fatalf("decision %d of %d: kept %v, want %v", seq, n, kept, want)
			}
			if !kept {
				continue
			}
			if k.Seq != seq || k.RequestID != fmt.Sprint("req-", seq) || k.Listed+k.LeftOut != wide || k.Listed > keptCandidates {
				t.Fatalf("decision %d: %+v", seq, k)
			}
			held := slices.IndexFunc(k.Decision.Candidates, func(c router.Candidate) bool { return c.Backend == r.Decision.Backend })
			if wide > 0 && (held < 0 || k.Decision.Candidates[held].MatchedBlocks != int(seq)-1) {
				t.Fatalf("decision %d lacks its chosen candidate: %+v", seq, k.Decision.Candidates)
			}
		}
	})
}

func TestDetailsAreWantedWhileSomebodyLooks(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := New(Config{InFlight: func() int64 { return 7 }, Queued: func() int64 { return 2 }})
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { l.Run(ctx) })
		defer run.Wait()
		defer stop()
		wanted := func() (n int) {
			time.Sleep(time.Second)
			synctest.Wait()
			for range 100 {
				if l.WantsDetail() {
					n++
				}
			}
			return n
		}
		if n := wanted(); n != 0 {
			t.Errorf("%d details wanted though nobody looks", n)
		}
		get(t, l.ServeDecisions, "/decisions", nil)
		if n := wanted(); n != detailsPerSecond {
			t.Errorf("%d details a second wanted, want %d", n, detailsPerSecond)
		}
		time.Sleep(lookTime * time.Second)
		if n := wanted(); n != 0 {
			t.Errorf("%d details wanted though nobody has looked for %d s", n, lookTime)
		}
		var s second
		if !l.second(time.Now().Unix()-3, &s) || s.inFlight != 7 || s.queued != 2 {
			t.Errorf("a quiet second has in flight %d, queued %d", s.inFlight, s.queued)
		}
	})
}

func TestManyGoroutinesMayTellAndAsk(t *testing.T) {
	l := New(Config{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			r := sampleRecord()
			r.Decision.Candidates = make([]router.Candidate, 3)
			for range 200 {
				l.Ended(r)
				l.WantsDetail()
			}
		})
		all.Go(func() {
			for range 4 {
				l.beat()
				get(t, l.ServeLive, "/live", nil)
				get(t, l.ServeDecisions, "/decisions?details=true&limit=200", nil)
			}
		})
	}
	all.Wait()
	if n := l.newestDecision(); n != 1600 {
		t.Errorf("%d decisions were counted, want 1600", n)
	}
}

func TestEndedAllocatesAtMostOnce(t *testing.T) {
	l, r := New(Config{}), sampleRecord()
	r.Decision.Candidates = make([]router.Candidate, 8)
	for range 2 * keptDecisions { // every place has room for candidates then
		l.Ended(r)
	}
	if n := testing.AllocsPerRun(100, func() { l.Ended(r) }); n > 1 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkEnded(b *testing.B) {
	for _, candidates := range []int{0, 8, 1000} {
		b.Run(fmt.Sprintf("candidates=%d", candidates), func(b *testing.B) {
			l, r := New(Config{}), sampleRecord()
			r.Decision.Candidates = make([]router.Candidate, candidates)
			b.ReportAllocs()
			for b.Loop() {
				l.Ended(r)
			}
		})
	}
}

func BenchmarkEndedParallel(b *testing.B) {
	l := New(Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for r := sampleRecord(); pb.Next(); {
			l.Ended(r)
		}
	})
}
