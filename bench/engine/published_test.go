package engine

import (
	"math/rand/v2"
	"testing"
	"time"
)

// sharedPrefixes replays llm-d's published test "37-capacity": 83 groups of prompts with a prefix of 8,000 tokens each and a question
// of 1,000, answers of 1,000 tokens, on four 70B engines. It returns the mean time to the first token under the given routing,
// after each group has been seen once.
func sharedPrefixes(qps float64, length time.Duration, route func(*rand.Rand, int) int) time.Duration {
	const groups, engines = 83, 4
	rng := rand.New(rand.NewPCG(3, 7))
	fleet := make([]*Engine, engines)
	for i := range fleet {
		fleet[i] = New(Profile70B)
	}
	submitted := map[uint64]time.Duration{}
	total, n := time.Duration(0), 0
	emit := func(ev Event) {
		if ev.Kind == FirstToken && ev.ID >= groups {
			total += ev.At - submitted[ev.ID]
			n++
		}
	}
	for id, at := uint64(0), time.Duration(0); at < length+groups*time.Second; id++ {
		at += time.Duration(rng.ExpFloat64() / qps * float64(time.Second))
		group := rng.IntN(groups)
		if id < groups {
			at, group = time.Duration(id+1)*time.Second, int(id)
		}
		chain := append(chainOf(uint64(group), 500), chainOf(1000+id, 62)...)
		e := fleet[route(rng, group)]
		e.Advance(at, emit)
		e.Submit(at, Request{ID: id, Blocks: chain, PromptTokens: 9000, OutputTokens: 1000})
		submitted[id] = at
	}
	for _, e := range fleet {
		for t, ok := e.Next(); ok; t, ok = e.Next() {
			e.Advance(t, emit)
		}
	}
	return total / time.Duration(n)
}

// The order of magnitude and the knee of the published figures must come out: with random routing the cache thrashes and queues
// form from 4 requests a second on; with routing by prefix nothing waits even at 8. An overloaded queue grows with the length of
// the test, which was not published: a minute is assumed.
func TestPublishedFiguresComeOutInOrderOfMagnitude(t *testing.T) {
	random := func(rng *rand.Rand, _ int) int { return rng.IntN(4) }
	prefix := func(_ *rand.Rand, group int) int { return group % 4 }
	for _, c := range []struct {
		name      string
		qps       float64
		route     func(*rand.Rand, int) int
		published time.Duration
	}{
		{"random", 3, random, 852 * time.Millisecond},
		{"random", 8, random, 39 * time.Second},
		{"precise", 3, prefix, 144 * time.Millisecond},
		{"precise", 8, prefix, 199 * time.Millisecond},
	} {
		got := sharedPrefixes(c.qps, time.Minute, c.route)
		t.Logf("%s at %v requests/s: first token after %v, published %v", c.name, c.qps, got, c.published)
		if got < c.published/2 || got > 2*c.published {
			t.Errorf("%s at %v requests/s: first token after %v, published %v", c.name, c.qps, got, c.published)
		}
	}
}
