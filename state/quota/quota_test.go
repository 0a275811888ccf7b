package quota

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func within(got, want, part float64) bool { return got >= want*(1-part) && got <= want*(1+part) }

// Eight nodes with more demand than the limit admit the limit, wherever the demand is.
func TestRequestsOfAllNodesAreWithinFivePercent(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  float64
		demand float64
		parts  []float64
		span   time.Duration
	}{
		{"small, even", 2, 200, evenly, 30 * time.Second},
		{"small, little demand", 2, 6, evenly, 60 * time.Second},
		{"small, one node", 2, 50, onOne, 20 * time.Second},
		{"small, owner", 2, 50, onOwner, 20 * time.Second},
		{"middle, even", 100, 200, evenly, 8 * time.Second},
		{"middle, skewed", 100, 150, mostlyOne, 8 * time.Second},
		{"middle, flood", 100, 20000, evenly, 3 * time.Second},
		{"large, even", 10000, 20000, evenly, 2 * time.Second},
		{"large, barely", 10000, 11500, evenly, 2 * time.Second},
		{"large, one node", 10000, 20000, onOne, 2 * time.Second},
		{"large, owner", 10000, 20000, onOwner, 2 * time.Second},
		{"large, skewed", 10000, 20000, mostlyOne, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(1, 8, Limit{Requests: c.limit})
			s.share(c.demand, c.parts...)
			s.run(2 * time.Second) // what was saved up is used up
			s.reset()
			s.run(c.span)
			asks := 0
			for _, n := range s.nodes[1:] {
				asks += n.asks
			}
			t.Logf("%d admitted, %v, %d asks", s.total(), s.admitted, asks)
			if want := c.limit * c.span.Seconds(); !within(float64(s.total()), want, 0.05) {
				t.Errorf("%d admitted, want %v", s.total(), want)
			}
		})
	}
}

func TestLoadThatMovesIsWithinFivePercent(t *testing.T) {
	for _, limit := range []float64{20, 1000} {
		s := newSim(2, 8, Limit{Requests: limit})
		s.share(2*limit, evenly...)
		s.run(3 * time.Second)
		s.reset()
		for i := range 20 {
			parts := make([]float64, 8)
			parts[i*3%8], parts[(i*5+1)%8] = 1, 0.3
			s.share(2*limit, parts...)
			s.run(time.Second)
		}
		if want := 20 * limit; !within(float64(s.total()), want, 0.05) {
			t.Errorf("limit %v: %d admitted, want %v", limit, s.total(), want)
		}
	}
}

// Below the limit nobody is refused for want of what lies unused elsewhere.
func TestDemandBelowTheLimitIsAdmitted(t *testing.T) {
	for _, parts := range [][]float64{evenly, onOne, mostlyOne} {
		s := newSim(3, 8, Limit{Requests: 1000, Tokens: 100_000, Concurrent: 400})
		s.cost = func() (int64, int64) { return 80, 80 }
		s.service = 200 * time.Millisecond
		s.run(2 * time.Second)
		s.share(800, parts...)
		s.run(10 * time.Second)
		if got, want := s.total(), 8000.0; !within(float64(got), want, 0.02) {
			t.Errorf("%v: %d of about %v admitted", parts, got, want)
		}
	}
}

func TestSlotsAreNeverExceededAndAreUsed(t *testing.T) {
	for _, c := range []struct {
		slots   int
		demand  float64
		service time.Duration
		parts   []float64
	}{
		{4, 200, 500 * time.Millisecond, evenly},
		{4, 200, 500 * time.Millisecond, onOne},
		{4, 100, 500 * time.Millisecond, mostlyOne},
		{1, 300, 300 * time.Millisecond, evenly},
		{100, 2000, 200 * time.Millisecond, evenly},
		{100, 2000, 200 * time.Millisecond, mostlyOne},
		{300, 900, time.Second, evenly},
	} {
		t.Run(fmt.Sprintf("%d slots, %v", c.slots, c.parts), func(t *testing.T) {
			s := newSim(4, 8, Limit{Concurrent: c.slots})
			s.service = c.service
			s.share(c.demand, c.parts...)
			s.run(2 * time.Second)
			s.slotTime = 0
			s.run(10 * time.Second)
			mean := s.slotTime.Seconds() / 10
			t.Logf("%.2f in use, %v", mean, s.admitted)
			if s.mostInUse > c.slots {
				t.Errorf("%d in use at once", s.mostInUse)
			}
			if mean < 0.95*float64(c.slots) {
				t.Errorf("%.2f in use on average", mean)
			}
		})
	}
}

func TestTokensAreWithinFivePercent(t *testing.T) {
	for _, parts := range [][]float64{evenly, onOne, onOwner, mostlyOne} {
		for _, wrong := range []float64{1, 0.3, 2} { // what is used, of what was estimated
			s := newSim(5, 8, Limit{Tokens: 100_000})
			s.cost = func() (int64, int64) {
				actual := 200 + s.rng.Float64()*1800
				return int64(actual / wrong), int64(actual)
			}
			s.service = 300 * time.Millisecond
			s.share(200, parts...)
			s.run(4 * time.Second)
			s.reset()
			s.run(8 * time.Second)
			if want := 8 * 100_000.0; !within(float64(s.tokens), want, 0.05) {
				t.Errorf("%v, used %v of the estimates: %d tokens, want %v", parts, wrong, s.tokens, want)
			}
		}
	}
}

// The owner's own node asks first, always, and must not get all.
func TestNoNodeIsStarved(t *testing.T) {
	for _, limit := range []Limit{{Requests: 4}, {Requests: 50}, {Requests: 2000}, {Concurrent: 4}, {Tokens: 2000}} {
		s := newSim(6, 8, limit)
		s.service = 50 * time.Millisecond
		s.cost = func() (int64, int64) { return 40, 40 }
		s.share(4000, evenly...)
		s.run(10 * time.Second)
		fair := float64(s.total()) / 8
		for i, n := range s.admitted {
			if float64(n) < fair/2 || float64(n) > fair*2 {
				t.Errorf("%+v: node %d got %d, a fair part is %.0f: %v", limit, i, n, fair, s.admitted)
				break
			}
		}
	}
}

func TestOneWrongEstimateIsForgottenInSeconds(t *testing.T) {
	for _, node := range []int{0, 3} {
		s := newSim(7, 8, Limit{Tokens: 1000})
		s.run(2 * time.Second)
		bad := true
		s.cost = func() (int64, int64) {
			if bad {
				bad = false
				return 10, 1 << 40
			}
			return 10, 10
		}
		s.nodes[node].rate = 100
		s.run(time.Second)
		s.reset()
		s.run(12 * time.Second)
		if s.total() != 0 {
			t.Errorf("node %d: the debt is forgotten too soon: %d admitted", node, s.total())
		}
		s.run(5 * time.Second)
		if s.total() == 0 {
			t.Errorf("node %d: the key is still shut", node)
		}
	}
}

func TestWhatLiesUnusedGoesBack(t *testing.T) {
	s := newSim(8, 8, Limit{Requests: 1000, Tokens: 1e6, Concurrent: 100})
	s.cost = func() (int64, int64) { return 500, 300 }
	s.service = 100 * time.Millisecond
	s.share(1500, evenly...)
	s.run(3 * time.Second)
	s.share(0, evenly...)
	s.run(3 * time.Second)
	for i, n := range s.nodes {
		if !n.hold.Idle() {
			t.Errorf("node %d has %+v", i, n.hold)
		}
	}
	if !s.owner.Idle(s.now) {
		t.Errorf("the owner has %+v", s.owner)
	}
}

// Whatever is asked, told, lost and dropped: no more is given than the bucket and the
// limit allow, and claims are those of known holders.
func TestOwnerGivesNoMoreThanThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{
			Requests: rapid.Float64Range(0.1, 1e4).Draw(t, "requests"), Tokens: rapid.Float64Range(1, 1e6).Draw(t, "tokens"),
			Concurrent: rapid.IntRange(1, 50).Draw(t, "slots"),
		}
		o, now, began := NewOwner(0), time.Duration(0), time.Duration(0)
		given, seqs := Amount{}, [4]uint64{}
		held := [4]int{}
		over := int64(0) // what needs have cost beyond what was there
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond
			h := rapid.IntRange(0, 3).Draw(t, "holder")
			if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
				held[h] = rapid.IntRange(0, held[h]).Draw(t, "released")
				o.Told(now, uint8(h), &Report{Seq: seqs[h], Applied: true, Held: held[h]})
				continue
			}
			seqs[h]++
			need := Amount{Requests: int64(rapid.IntRange(0, 1).Draw(t, "need")), Tokens: int64(rapid.IntRange(0, 5000).Draw(t, "tokens")), Slots: 1}
			want := Amount{Requests: need.Requests + 50, Tokens: need.Tokens + 1000, Slots: 5}
			g := o.Grant(now, uint8(h), &Ask{Seq: seqs[h], Limit: l, Held: held[h], Need: need, Want: want})
			over = max(over, need.Tokens)
			held[h] += g.Given.Slots
			given.Requests += g.Given.Requests
			given.Tokens += g.Given.Tokens
			if sum := held[0] + held[1] + held[2] + held[3]; sum > l.Concurrent {
				t.Fatalf("%d slots of %d are given", sum, l.Concurrent)
			}
			if g.Why == Nothing && (g.Given.Requests < need.Requests || g.Given.Tokens < need.Tokens || g.Given.Slots < need.Slots) {
				t.Fatalf("needed %+v, got %+v, and nothing is said to be short", need, g)
			}
		}
		span := (now - began).Seconds()
		c := l.Clean()
		if most := c.Requests*span + 1e-6; float64(given.Requests) > most {
			t.Fatalf("%d requests are given, %v have come", given.Requests, most)
		}
		if most := c.Tokens*span + float64(over) + 1e-3; float64(given.Tokens) > most && -o.tokens.level < maxDebt*c.Tokens-1 {
			t.Fatalf("%d tokens are given, %v have come", given.Tokens, most)
		}
	})
}

// What a peer says can be anything.
func TestAnythingMayBeSaid(t *testing.T) {
	amount := func(t *rapid.T) Amount {
		return Amount{Requests: rapid.Int64().Draw(t, "requests"), Tokens: rapid.Int64().Draw(t, "tokens"), Slots: rapid.Int().Draw(t, "slots")}
	}
	limit := func(t *rapid.T) Limit {
		rate := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 1}))
		return Limit{Requests: rate.Draw(t, "rate"), Tokens: rate.Draw(t, "rate"), Concurrent: rapid.Int().Draw(t, "n"), Burst: time.Duration(rapid.Int64().Draw(t, "burst"))}
	}
	rapid.Check(t, func(t *rapid.T) {
		o, h, now := NewOwner(0), &Holder{}, time.Duration(0)
		for range 20 {
			now += time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "passed"))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				o.Grant(now, rapid.Uint8().Draw(t, "holder"), &Ask{rapid.Uint64().Draw(t, "seq"), limit(t), rapid.Int().Draw(t, "held"), amount(t), amount(t)})
			case 1:
				o.Told(now, rapid.Uint8().Draw(t, "holder"), &Report{rapid.Uint64().Draw(t, "seq"), rapid.Bool().Draw(t, "applied"), rapid.Int().Draw(t, "held"), amount(t)})
			case 2:
				a := h.Ask(now, 1, amount(t))
				h.Apply(now, &Grant{a.Seq, limit(t), amount(t), time.Duration(rapid.Int64().Draw(t, "retry")), Why(rapid.Uint8().Draw(t, "why")), true})
			case 3:
				h.Demand(now, limit(t), rapid.Int64Range(1, maxTokens).Draw(t, "cost"))
				h.Take(now, 1)
				h.Settle(now, rapid.Int64().Draw(t, "settled"))
				h.Return(now)
			case 4:
				o.Recall(nil)
				o.Tend(now)
			}
			if free := o.free(); free < 0 || free > MaxSlots {
				t.Fatalf("%d slots are free", free)
			}
			for _, level := range []float64{o.requests.level, o.tokens.level} {
				if math.IsNaN(level) || math.IsInf(level, 0) {
					t.Fatalf("a bucket has %v", level)
				}
			}
			if h.slots < h.inUse || h.requests < 0 || h.slots > MaxSlots+1 {
				t.Fatalf("a holder has %+v", h)
			}
		}
	})
}
