package backend

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBreakerCountsFailuresInARow(t *testing.T) {
	type report struct {
		f     Failure
		chain uint64
	}
	bad := func(chain uint64) report { return report{BadStatus, chain} }
	ok := report{}
	cases := map[string]struct {
		reports []report
		opens   bool
	}{
		"three of two chains":              {[]report{bad(1), bad(1), bad(2)}, true},
		"two are too few":                  {[]report{bad(1), bad(2)}, false},
		"one chain however often":          {[]report{bad(1), bad(1), bad(1), bad(1), bad(1), bad(1)}, false},
		"one stream however often":         {[]report{{StreamFailure, 1}, {StreamFailure, 1}, {StreamFailure, 1}}, false},
		"a success between":                {[]report{bad(1), bad(2), ok, bad(3), bad(4)}, false},
		"connections whatever the chain":   {[]report{{ConnectFailure, 1}, {ConnectFailure, 1}, {ConnectFailure, 1}}, true},
		"broken ones whatever the chain":   {[]report{{BrokenConnection, 1}, {BrokenConnection, 1}, {BrokenConnection, 1}}, true},
		"mixed":                            {[]report{bad(1), {BrokenConnection, 1}, bad(1)}, true},
		"no chain is a chain like another": {[]report{bad(0), bad(0), bad(0)}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var b breaker
			ripe := false
			for _, r := range c.reports {
				if r.f == NoFailure {
					b.reset()
					continue
				}
				ripe = b.fail(r.f, r.chain, 3)
			}
			if ripe != c.opens {
				t.Fatalf("ripe = %v, want %v", ripe, c.opens)
			}
		})
	}
}

func TestBreakerBackoffDoublesToItsMost(t *testing.T) {
	var b breaker
	now := time.Unix(0, 0)
	for i, want := range []time.Duration{1, 2, 4, 4} {
		b.fail(BrokenConnection, 1, 1)
		b.open(BadStatus, now, 1)
		if got := b.until.Sub(now); got != want*time.Second {
			t.Fatalf("opening %d: %v, want %v", i, got, want*time.Second)
		}
		if b.due(b.until.Add(-1)) || !b.due(b.until) {
			t.Fatal("due at the wrong time")
		}
		now = b.until
		b.halfOpen()
	}
	b.reset()
	b.open(BadStatus, now, 0)
	if got := b.until.Sub(now); got != 900*time.Millisecond {
		t.Fatalf("after a success: %v", got)
	}
}

func TestHalfOpenBreakerOpensAtTheNextFailure(t *testing.T) {
	var b breaker
	b.fail(BadStatus, 1, 3)
	b.fail(BadStatus, 1, 3)
	b.fail(BadStatus, 2, 3)
	b.open(BadStatus, time.Unix(0, 0), 0)
	if b.fail(BadStatus, 3, 3) {
		t.Fatal("an open breaker is ripe")
	}
	b.halfOpen()
	if !b.fail(BadStatus, 1, 3) {
		t.Fatal("one failure should do")
	}
}

// One prompt, in whatever order with successes, never makes a breaker ripe.
func TestOnePromptNeverOpensABreaker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b breaker
		chain := rapid.Uint64().Draw(t, "chain")
		for range rapid.IntRange(1, 50).Draw(t, "n") {
			f := rapid.SampledFrom([]Failure{NoFailure, BadStatus, StreamFailure, HeaderTimeout}).Draw(t, "f")
			if f == NoFailure {
				b.reset()
			} else if b.fail(f, chain, 3) {
				t.Fatal("ripe")
			}
		}
	})
}
