package rival

import (
	"fmt"
	"testing"
	"time"
)

func TestSMGDropsLocalityOnlyWhereLoadIsUneven(t *testing.T) {
	for _, c := range []struct {
		name        string
		least, most int
		want        int
	}{
		{"smg", 0, 64, 1},
		{"smg", 0, 65, 0},
		{"smg", 200, 290, 1}, // 90 more, but not 1.5 times as many
		{"smg", 100, 165, 0},
		{"smg-library", 0, 32, 1},
		{"smg-library", 0, 33, 0},
	} {
		t.Run(fmt.Sprintf("%s/%d-%d", c.name, c.least, c.most), func(t *testing.T) {
			r := newRig(t, c.name, 2)
			r.teach(prompt(1, 10), 1)
			r.load(0, c.least)
			r.load(1, c.most)
			r.only(prompt(1, 10), c.want)
		})
	}
}

func TestSMGFollowsAMatchAboveItsThreshold(t *testing.T) {
	r := newRig(t, "smg", 3)
	r.teach(prompt(1, 10), 2)
	r.load(2, 5)
	r.load(1, 1)
	r.only(fork(1, 2, 3, 10), 0) // .3 is not more than .3
	r.only(fork(1, 2, 4, 10), 2)
}

func TestSMGNamesTheWorkerThatMadeTheNode(t *testing.T) {
	r := newRig(t, "smg", 4)
	r.teach(prompt(1, 4), 3)
	r.teach(prompt(1, 8), 1)
	r.only(prompt(1, 4), 3)
	r.only(prompt(1, 8), 1)
	r.Remove(3)
	r.only(prompt(1, 4), 1)
}

func TestSMGTreeIsTrimmedNowAndThen(t *testing.T) {
	r := newRig(t, "smg-library", 1) // 10,000 characters: 19 units
	r.route(prompt(1, 30))
	if n := r.gateways[0].belief.byName.used; n != 30 {
		t.Fatalf("%d units before the interval, want 30", n)
	}
	r.now = 31 * time.Second
	r.gateways[0].belief.age(r.now)
	b := r.gateways[0].belief
	if depth, _ := b.trunk(prompt(1, 30).Names); depth != 19 {
		t.Errorf("%d units remain at the beginning, want 19", depth)
	}
}

func TestLLMDWeighsPrefixQueueAndUsage(t *testing.T) {
	r := newRig(t, "llm-d", 3)
	r.teach(prompt(1, 10), 0)
	set := func(waiting []int, usage []float64) {
		for i, e := range r.engines {
			e.waiting, e.usage = waiting[i], usage[i]
		}
		r.now += time.Second
		r.Tick(r.now)
	}
	set([]int{0, 0, 0}, []float64{0, 0, 0})
	r.only(prompt(1, 10), 0)
	r.among(prompt(2, 10), 0, 1, 2)
	// A queue of one costs as much as the longest: 3 x match against 2.
	set([]int{1, 0, 0}, []float64{0, 0, 0})
	r.only(fork(1, 2, 7, 10), 0)
	r.among(fork(1, 2, 6, 10), 1, 2)
	// Queue and usage together outweigh a whole prompt.
	set([]int{9, 0, 8}, []float64{.6, 0, 0})
	r.only(prompt(1, 10), 1)
	set([]int{0, 0, 0}, []float64{.9, .5, .2})
	r.only(prompt(3, 10), 2)
}

func TestFiguresAreAsOldAsTheScrape(t *testing.T) {
	r := newRig(t, "llm-d", 2)
	r.Tick(0)
	r.engines[0].waiting = 5
	r.among(prompt(1, 1), 0, 1)
	r.Tick(49 * time.Millisecond)
	r.among(prompt(1, 1), 0, 1)
	r.Tick(50 * time.Millisecond)
	r.only(prompt(1, 1), 1)
}

func TestColdRequestsGoWhereTheLastOneIsLongestAgo(t *testing.T) {
	r := newRig(t, "llm-d-no-hit-lru", 3)
	for i, want := range []int{0, 1, 2, 0, 1} {
		if got := r.route(prompt(uint64(i+1), 4)).Backend; got != want {
			t.Errorf("cold request %d went to %d, want %d", i, got, want)
		}
	}
	// A hit leaves the order as it is.
	r.only(prompt(1, 4), 0)
	r.route(prompt(1, 4))
	r.only(prompt(9, 4), 2)
}

func TestAffinityHoldsUntilThePenalty(t *testing.T) {
	r := newRig(t, "llm-d-affinity", 3)
	r.teach(prompt(1, 10), 0)
	r.teach(fork(1, 2, 7, 10), 1)
	r.books.book(0, 0, load{prefill: 286_720}, 0)
	r.only(prompt(1, 10), 0)
	r.only(fork(1, 3, 8, 10), 0) // 8 of 10 are enough
	r.only(fork(1, 3, 7, 10), 1) // 7 are not: 3 to compute against 10
	r.books.book(0, 0, load{prefill: 1}, 0)
	r.only(prompt(1, 10), 1) // what it has counts still
	r.books.book(0, 1, load{prefill: 10*unit + 1}, 0)
	r.only(prompt(1, 10), 2)
	r.books.book(0, 2, load{prefill: 1}, 0)
	r.only(prompt(1, 10), 0) // the best other has more ahead now
	r.only(prompt(2, 10), 2)
	if r.route(prompt(2, 10)); r.question.match[2] != 0 {
		t.Error("the prompt was known before")
	}
	if got := r.books.own[0][2].prefill; got != 10*unit+1 {
		t.Errorf("%d tokens booked, want those of the prompt and the one before", got)
	}
}

func TestLLMDCountsBehindAGap(t *testing.T) {
	r := newRig(t, "llm-d", 2)
	r.gateways[0].belief.units = 4
	r.teach(prompt(1, 6), 0) // has lost its first two units
	r.teach(prompt(1, 2), 1)
	r.ask(&r.gateways[0], 0, prompt(1, 6), 0)
	if got := r.question.match; got[0] != 4 || got[1] != 2 {
		t.Errorf("matches %v, want [4 2]", got)
	}
}

func TestPreciseFollowsTheEngines(t *testing.T) {
	for _, name := range []string{"llm-d-precise", "dynamo-events", "oracle"} {
		r := newRig(t, name, 3)
		q := prompt(1, 10)
		r.hold(q, 2)
		r.only(q, 2)
	}
}

// hold puts a prompt into an engine's cache.
func (r *rig) hold(q *Request, backend int) {
	for _, name := range q.Names {
		r.engines[backend].held[name] = true
	}
}

func TestPublishedPreciseStretchesWhatPodsHave(t *testing.T) {
	r := newRig(t, "llm-d-73-precise", 3)
	hold := func(backend, units int) {
		clear(r.engines[backend].held)
		for _, name := range prompt(1, 10).Names[:units] {
			r.engines[backend].held[name] = true
		}
	}
	set := func(usage ...float64) {
		for i, u := range usage {
			r.engines[i].usage = u
		}
		r.now += time.Second
		r.Tick(r.now)
	}
	hold(0, 10)
	hold(1, 9)
	set(1, 0, 0)
	r.only(prompt(1, 10), 0) // 3 x 1 against 2 x 1: the nine count for nothing
	hold(1, 10)
	r.only(prompt(1, 10), 1)
	hold(0, 0)
	hold(1, 1)
	set(0, 1, 0)
	r.only(prompt(1, 10), 1) // alone it counts as all
}

func TestPublishedEstimateSeesTheBeginningOnly(t *testing.T) {
	r := newRig(t, "llm-d-73-estimated", 2)
	first := r.route(fork(1, 2, 32, 60)).Backend // 32 units are 16 KiB
	if n := r.gateways[0].belief.byName.used; n != 32 {
		t.Errorf("%d units learned, want 32", n)
	}
	for range 20 {
		if got := r.route(fork(1, 3, 32, 60)).Backend; got != first {
			t.Fatalf("went to %d, want %d: what differs lies behind", got, first)
		}
	}
}

func TestDynamoAddsPrefillAndDecodeBlocks(t *testing.T) {
	r := newRig(t, "dynamo", 2)
	first := r.route(prompt(1, 10))
	held, other := first.Backend, 1-first.Backend
	// To prefill there 10 + 10 - 10, in use 10: 20. Elsewhere 10 + 10: 20.
	r.among(prompt(1, 10), 0, 1)
	first.Begin(0)
	// There 0 + 10, elsewhere 10 + 10.
	r.only(prompt(1, 10), held)
	// Of another prompt there 10 + 20, elsewhere 10 + 10.
	r.only(prompt(2, 10), other)
	first.End(0)
	r.only(prompt(1, 10), held)
	r.among(prompt(2, 10), 0, 1)
}

func TestDynamoForgetsAfterItsTTL(t *testing.T) {
	r := newRig(t, "dynamo", 2)
	a := r.route(prompt(1, 10))
	a.Begin(0)
	a.End(0)
	r.now = 120 * time.Second
	r.only(prompt(1, 10), a.Backend)
	r.now++
	r.among(prompt(1, 10), 0, 1)
}

func TestAIBrixGuardsAgainstUnevenLoad(t *testing.T) {
	for _, c := range []struct {
		loads []int
		want  int
	}{
		{[]int{4, 4, 4, 4}, 0},
		{[]int{5, 3, 4, 4}, 3},    // mean 4, sigma .7: 5 is too much, then the next best match
		{[]int{12, 4, 12, 12}, 0}, // mean 10, sigma 3.5
		{[]int{9, 1, 5, 6}, 3},
		{[]int{10, 1, 5, 6}, 1}, // 9 more than the least
	} {
		t.Run(fmt.Sprint(c.loads), func(t *testing.T) {
			r := newRig(t, "aibrix", 4)
			r.teach(prompt(1, 10), 0)
			r.teach(fork(1, 2, 5, 10), 3)
			for b, n := range c.loads {
				r.load(b, n)
			}
			r.only(prompt(1, 10), c.want)
		})
	}
}

func TestAIBrixTakesTheIdlerOfEqualMatches(t *testing.T) {
	r := newRig(t, "aibrix", 3)
	r.teach(prompt(1, 10), 0)
	r.teach(prompt(1, 10), 1)
	r.load(0, 2)
	r.load(1, 1)
	r.only(prompt(1, 10), 1)
	r.only(prompt(2, 10), 2)
}

func TestSessionsStayWhateverTheLoad(t *testing.T) {
	r := newRig(t, "session-hash", 8)
	q := prompt(7, 3)
	home := r.route(q).Backend
	r.load(home, 1000)
	r.only(fork(9, 7, 1, 4), home)
	r.Remove((home + 1) % 8)
	r.only(q, home)
	r.Remove(home)
	away := r.route(q).Backend
	r.Restore(home)
	if r.only(q, home); away == home {
		t.Error("went to a backend that was removed")
	}
}

func TestTheRingSpillsAtItsBound(t *testing.T) {
	r := newRig(t, "bounded-hash-100", 4)
	q := prompt(1, 5)
	home := r.route(q).Backend
	r.only(fork(1, 2, 1, 9), home)
	*r.books = *newBooks(1, 4, false, 0)
	for b := range 4 {
		r.load(b, 4)
	}
	// 5 <= 1.25 x 17 / 4 = 5.3; then 6 > 1.25 x 18 / 4 = 5.6.
	r.only(q, home)
	r.load(home, 1)
	if n := r.counts(q, 1); n[home] != 0 {
		t.Error("stayed above the bound")
	}
	// All above it: the first on the ring after all.
	*r.books = *newBooks(1, 4, false, 0)
	for b := range 4 {
		r.load(b, 1)
	}
	r.only(q, home)
}

func TestLeastTokensCountsCachedOnesToo(t *testing.T) {
	r := newRig(t, "least-tokens", 2)
	a := r.route(prompt(1, 10))
	r.only(prompt(1, 10), 1-a.Backend)
	a.Begin(0)
	r.only(prompt(1, 10), 1-a.Backend)
	a.End(0)
	r.among(prompt(1, 10), 0, 1)
}

func TestTheOracleCountsWhatIsOnItsWay(t *testing.T) {
	r := newRig(t, "oracle", 3, gateways(8, Nothing, time.Second))
	q := prompt(1, 20)
	a := r.Route(5, q, 0)
	r.only(prompt(1, 20), a.Backend) // 20 units and a request there against 4 x 20 elsewhere
	r.among(prompt(2, 20), (a.Backend+1)%3, (a.Backend+2)%3)
	a.End(0) // it has failed: nothing is there
	r.among(prompt(1, 20), 0, 1, 2)
}

func TestTheOracleWeighsLoadAgainstNovelty(t *testing.T) {
	r := newRig(t, "oracle", 2)
	q := prompt(1, 10)
	r.hold(q, 0)
	r.books.book(0, 0, load{prefill: 40*unit - 1}, 0)
	r.only(q, 0)
	r.books.book(0, 0, load{prefill: 2}, 0)
	r.only(q, 1)
	if _, err := New("oracle-x", r.cfg); err == nil {
		t.Error("oracle-x was taken")
	}
	f, err := New("oracle-3.5", r.cfg)
	if err != nil || f.rule != (oracle{3.5, 128}) {
		t.Errorf("oracle-3.5: %v, %v", f, err)
	}
}
