package sim

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kvca/bench/engine"
	"kvca/bench/rival"
	"kvca/bench/trace"
	"kvca/state/ring"
)

// round is a profile whose steps can be worked out by hand.
var round = engine.Profile{
	PrefillStep: 10 * time.Millisecond, DecodeStep: 10 * time.Millisecond, PerPromptToken: 10 * time.Microsecond, KVTokens: 64_000,
}

// names are those of n units of one prompt.
func names(prompt uint64, n int) []uint64 {
	list, before := make([]uint64, n), ring.Mix(prompt)
	for i := range list {
		before = ring.Mix(before + uint64(i))
		list[i] = before
	}
	return list
}

// prompt is a request of that many tokens, the beginning of a prompt.
func prompt(number uint64, tokens int) trace.Request {
	return trace.Request{After: -1, PromptTokens: tokens, OutputTokens: 1, Names: names(number, tokens/trace.UnitTokens)}
}

// singles are sessions of one request each, interval apart.
func singles(interval time.Duration, list ...trace.Request) *trace.Trace {
	t := &trace.Trace{Name: "singles"}
	for i, r := range list {
		t.Sessions = append(t.Sessions, trace.Session{Start: time.Duration(i) * interval, Requests: []trace.Request{r}})
	}
	return t
}

// talks are conversations with turns of some hundred tokens after a system prompt that a few of them share, two a second.
func talks(seed uint64, sessions int) *trace.Trace {
	rng := rand.New(rand.NewPCG(seed, 0))
	t, at := &trace.Trace{Name: "talks"}, time.Duration(0)
	for i := range sessions {
		at += time.Duration(rng.ExpFloat64() * float64(500*time.Millisecond))
		all := append(names(uint64(rng.IntN(4)), 8), names(1000+uint64(i), 400)...)
		s := trace.Session{Start: at}
		for turn, tokens := 0, 8*trace.UnitTokens; turn < 1+rng.IntN(8); turn++ {
			tokens += 100 + rng.IntN(900)
			r := trace.Request{
				After: turn - 1, Think: time.Duration(rng.IntN(3000)) * time.Millisecond, PromptTokens: tokens, OutputTokens: 1 + rng.IntN(200),
				Names: all[:tokens/trace.UnitTokens], FollowUp: turn > 0,
			}
			tokens += r.OutputTokens
			r.Answer = all[len(r.Names) : tokens/trace.UnitTokens]
			s.Requests = append(s.Requests, r)
		}
		t.Sessions = append(t.Sessions, s)
	}
	return t
}

// play runs a simulation to its end and lets the test look inside.
func play(t *testing.T, cfg Config, tr *trace.Trace) (*simulation, *Result) {
	t.Helper()
	s, err := newSimulation(cfg, tr)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.play(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, s.result()
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestThreeRequestsByHand(t *testing.T) {
	for _, policy := range []string{"cost", "two-phase", "round-robin"} {
		tr := singles(100*time.Millisecond, prompt(1, 266), prompt(1, 266), prompt(1, 256))
		s, r := play(t, Config{Policy: policy, Profile: round}, tr)
		// Three hops, a step, and 266, 10 and 128 tokens at 10 us: the last block of a prompt of whole blocks is computed again.
		want := []float64{1.5e-3 + 10e-3 + 10*10e-6, 1.5e-3 + 10e-3 + 128*10e-6, 1.5e-3 + 10e-3 + 266*10e-6}
		for i, w := range want {
			if !near(r.TTFTs[i], w) {
				t.Errorf("%s: time to first token %d is %v, want %v", policy, i, r.TTFTs[i], w)
			}
		}
		if !near(r.HitRate, float64(256+128)/(266+266+256)) || !near(r.TTFT.Mean, (want[0]+want[1]+want[2])/3) || !near(r.TTFT.P50, want[1]) || !near(r.TTFT.P99, want[2]) {
			t.Errorf("%s: %+v", policy, r)
		}
		if r.MaxMeanComputed != 1 || s.engines.servers[0].computed != 266+10+128 || r.LoadCoV != 0 {
			t.Errorf("%s: computed %d, max/mean %v, CoV %v", policy, s.engines.servers[0].computed, r.MaxMeanComputed, r.LoadCoV)
		}
	}
}

func TestSameSeedSameResult(t *testing.T) {
	for _, policy := range Policies() {
		run := func(seed uint64) string {
			cfg := Config{Policy: policy, Backends: 4, Profile: engine.Profile8B, Seed: seed, Window: 10 * time.Second}
			if !cfg.isProduct() {
				cfg.Nodes = 3
			}
			r, err := Run(t.Context(), cfg, talks(7, 60))
			if err != nil {
				t.Fatal(err)
			}
			r.WallS, r.Seed = 0, 0
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		first := run(1)
		if again := run(1); again != first {
			t.Errorf("%s: %s\nthen %s", policy, first, again)
		}
		if policy == "cost" && run(2) == first {
			t.Errorf("%s: another seed changes nothing", policy)
		}
	}
}

func TestEveryRequestEndsOnceAndGivesItsLoadBack(t *testing.T) {
	tr := talks(3, 80)
	for _, policy := range Policies() {
		s, r := play(t, Config{Policy: policy, Backends: 4, Profile: engine.Profile8B, Seed: 5}, tr)
		var prompts, engines, computed int64
		for i := range tr.Sessions {
			for _, q := range tr.Sessions[i].Requests {
				prompts += int64(q.PromptTokens)
			}
		}
		for _, v := range s.engines.servers {
			st := v.Stats()
			engines += int64(st.PromptTokens)
			computed += v.computed
			if st.Preemptions == 0 && int64(st.PrefillTokens) != v.computed {
				t.Errorf("%s: %d tokens computed, the engine says %d", policy, v.computed, st.PrefillTokens)
			}
		}
		if r.Requests != tr.Requests() || len(r.TTFTs) != r.Requests || r.Failed != 0 || s.clients.open != 0 || len(s.clients.live) != 0 {
			t.Errorf("%s: %d of %d ended, %d first tokens, %d failed", policy, r.Requests, tr.Requests(), len(r.TTFTs), r.Failed)
		}
		if engines != prompts || computed+s.figures.all.cached != prompts {
			t.Errorf("%s: %d prompt tokens, %d at engines, %d computed + %d cached", policy, prompts, engines, computed, s.figures.all.cached)
		}
		if p, ok := s.gate.(*product); ok && (p.ledger.Held() != 0 || p.blocks.Stats().Locations == 0) {
			t.Errorf("%s: %d reservations are left, %d locations known", policy, p.ledger.Held(), p.blocks.Stats().Locations)
		}
	}
}

func TestClosedLoopHoldsAsManySessionsAsLanes(t *testing.T) {
	tr := talks(1, 40)
	tr.Lanes = 5
	s, r := play(t, Config{Policy: "cost", Backends: 2, Profile: engine.Profile8B}, tr)
	if s.clients.mostOpen != 5 || r.Requests != tr.Requests() {
		t.Errorf("%d sessions at once, %d of %d requests", s.clients.mostOpen, r.Requests, tr.Requests())
	}
}

func TestStageWaitsForTheEndOfTheOneBefore(t *testing.T) {
	// The first stage's second request comes when its first is long over; the other stage's come together.
	tr := singles(10*time.Second, prompt(1, 266), prompt(1, 266), prompt(1, 266), prompt(2, 266))
	tr.Sessions[2].Start, tr.Sessions[3].Start = 0, 0
	tr.Stages, tr.Pause = []int{2}, time.Second
	s, r := play(t, Config{Policy: "cost", Profile: round}, tr)
	if len(r.Stages) != 2 || r.Stages[0].Requests != 2 || r.Stages[1].Requests != 2 {
		t.Fatalf("%+v", r.Stages)
	}
	if from, to := s.figures.stages[1].from, s.figures.stages[0].to; from != to+time.Second {
		t.Errorf("the second stage began at %v, the first ended at %v", from, to)
	}
	if hits := float64(256) / (2 * 266); r.Stages[0].HitRate != hits || r.Stages[1].HitRate != hits {
		t.Errorf("hit rates %v and %v, want %v: caches stay", r.Stages[0].HitRate, r.Stages[1].HitRate, hits)
	}
	for i, st := range s.figures.stages {
		if want := float64(st.output) / (st.to - st.from).Seconds(); st.output == 0 || r.Stages[i].TokensPerS != want {
			t.Errorf("stage %d: %v tokens a second, want %v", i, r.Stages[i].TokensPerS, want)
		}
	}
}

func TestRoundRobinSpreadsExactly(t *testing.T) {
	var list []trace.Request
	for i := range uint64(40) {
		list = append(list, prompt(i, 1000))
	}
	s, r := play(t, Config{Policy: "round-robin", Backends: 4, Profile: round}, singles(20*time.Millisecond, list...))
	for i, v := range s.engines.servers {
		if v.computed != 10_000 {
			t.Errorf("backend %d computed %d tokens", i, v.computed)
		}
	}
	if r.MaxMeanComputed != 1 || r.HitRate != 0 {
		t.Errorf("max/mean %v, hits %v", r.MaxMeanComputed, r.HitRate)
	}
}

func TestFollowUpsStayAndHit(t *testing.T) {
	_, cost := play(t, Config{Policy: "cost", Backends: 4, Profile: engine.Profile8B}, talks(2, 60))
	_, plain := play(t, Config{Policy: "round-robin", Backends: 4, Profile: engine.Profile8B}, talks(2, 60))
	if cost.Kept < 0.95 || plain.Kept > 0.5 || cost.FollowUpHitRate < plain.FollowUpHitRate+0.1 {
		t.Errorf("kept %v and %v, hits %v and %v", cost.Kept, plain.Kept, cost.FollowUpHitRate, plain.FollowUpHitRate)
	}
}

func TestTooLongPromptFailsAndItsSessionGoesOn(t *testing.T) {
	small := round
	small.KVTokens = 1024
	long := prompt(1, 2000)
	next := prompt(2, 300)
	next.After = 0
	tr := &trace.Trace{Sessions: []trace.Session{{Requests: []trace.Request{long, next}}}}
	if _, r := play(t, Config{Policy: "cost", Profile: small}, tr); r.Failed != 1 || r.Requests != 2 || len(r.TTFTs) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestWindowsSumUpToTheWhole(t *testing.T) {
	_, r := play(t, Config{Policy: "cost", Backends: 2, Profile: engine.Profile8B, Window: 5 * time.Second}, talks(2, 30))
	n := 0
	for _, w := range r.Windows {
		n += w.Requests
	}
	if n != r.Requests || len(r.Windows) < 3 {
		t.Errorf("%d requests in %d windows, want %d", n, len(r.Windows), r.Requests)
	}
}

func TestFaultsOfAConfigurationComeTogether(t *testing.T) {
	cfg := Config{
		Policy: "fastest", Nodes: -1, Backends: -1, Delay: -1, Loss: 1, Window: -1,
		Disturb: []Disturbance{{}, {Kind: KillNode, Target: 3}, {Kind: RestartBackend, Down: -1}},
	}
	cfg.Router.BlockSize = 200
	err := cfg.Validate()
	if err == nil {
		t.Fatal("no faults")
	}
	for _, part := range []string{`"fastest": want one of`, "nodes: -1", "backends: -1", "profile: 0", "delay", "loss", "window", "block size: 200", "disturbance 0", "disturbance 1", "disturbance 2"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %v", part, err)
		}
	}
}

func TestUnplayableTraceIsRefused(t *testing.T) {
	late := prompt(1, 200)
	late.After = 0
	whole := singles(0, prompt(1, 200), prompt(1, 200))
	for _, tr := range []*trace.Trace{
		nil,
		{},
		{Sessions: []trace.Session{{Requests: []trace.Request{late}}}},
		{Sessions: whole.Sessions, Stages: []int{0}},
		{Sessions: whole.Sessions, Stages: []int{2}},
		{Sessions: whole.Sessions, Stages: []int{1}, Lanes: 1},
		{Sessions: append(whole.Sessions, trace.Session{}), Stages: []int{1}},
	} {
		if _, err := Run(t.Context(), Config{Policy: "cost", Profile: round}, tr); err == nil {
			t.Errorf("%+v was played", tr)
		}
	}
}

func TestEndOfContextEndsARun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Config{Policy: "cost", Profile: round}, talks(1, 10)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestEveryRivalPlaysOnManyNodes(t *testing.T) {
	tr := talks(4, 40)
	for _, policy := range rival.Names() {
		_, r := play(t, Config{Policy: policy, Nodes: 4, Backends: 4, Profile: engine.Profile8B, Sharing: rival.Map, Delay: time.Millisecond}, tr)
		if r.Requests != tr.Requests() || r.Failed != 0 {
			t.Errorf("%s: %d of %d ended, %d failed", policy, r.Requests, tr.Requests(), r.Failed)
		}
	}
}
