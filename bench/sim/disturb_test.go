package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/bench/engine"
	"kvca/bench/rival"
	"kvca/bench/trace"
)

func TestRequestsOfAKilledBackendAreTriedElsewhere(t *testing.T) {
	// Backend 0 is killed 5 ms into the first step of everything on it: nothing has begun.
	var list []trace.Request
	for i := range uint64(8) {
		list = append(list, prompt(i, 1000))
	}
	cfg := Config{Policy: "round-robin", Backends: 2, Profile: round, Disturb: []Disturbance{
		{At: 6 * time.Millisecond, Kind: RestartBackend, Target: 0, Down: time.Second},
	}}
	s, r := play(t, cfg, singles(0, list...))
	if r.Failed != 0 || r.Retried != 4 || len(r.TTFTs) != 8 {
		t.Errorf("%d failed, %d retried, %d first tokens", r.Failed, r.Retried, len(r.TTFTs))
	}
	if s.engines.servers[1].computed != 8000 || s.engines.servers[0].computed != 0 {
		t.Errorf("computed %d and %d", s.engines.servers[0].computed, s.engines.servers[1].computed)
	}
	if held := s.gate.(*product).ledger.Held(); held != 0 {
		t.Errorf("%d reservations are left", held)
	}
}

func TestStreamThatBreaksIsNotTriedAgain(t *testing.T) {
	long := prompt(1, 200)
	long.OutputTokens = 1000
	cfg := Config{Policy: "cost", Backends: 2, Profile: round, Disturb: []Disturbance{
		{At: time.Second, Kind: RestartBackend, Target: 0}, {At: time.Second, Kind: RestartBackend, Target: 1},
	}}
	if _, r := play(t, cfg, singles(0, long)); r.Failed != 1 || r.Retried != 0 || len(r.TTFTs) != 1 {
		t.Errorf("%+v", r)
	}
}

// everything goes wrong once, some of it at once.
var everything = []Disturbance{
	{At: 4 * time.Second, Kind: RestartBackend, Target: 0, Down: 3 * time.Second},
	{At: 5 * time.Second, Kind: RemoveBackend, Target: 1},
	{At: 5 * time.Second, Kind: KillNode, Target: 0},
	{At: 8 * time.Second, Kind: StartNode, Target: 0},
	{At: 9 * time.Second, Kind: AddBackend, Target: 1},
	{At: 12 * time.Second, Kind: AddBackend, Target: 3},
	{At: 13 * time.Second, Kind: RestartBackend, Target: 2},
}

func TestEveryRequestEndsWhateverIsDisturbed(t *testing.T) {
	tr := talks(9, 80)
	for _, policy := range Policies() {
		for seed := range uint64(2) {
			cfg := Config{Policy: policy, Backends: 4, Profile: engine.Profile8B, Seed: seed, Disturb: everything}
			if slices.Contains(rival.Names(), policy) {
				cfg.Nodes = 2
			}
			s, r := play(t, cfg, tr)
			if r.Requests != tr.Requests() || len(s.clients.live) != 0 || r.Failed > r.Requests/4 {
				t.Errorf("%s, seed %d: %d of %d ended, %d failed", policy, seed, r.Requests, tr.Requests(), r.Failed)
			}
			if p, ok := s.gate.(*product); ok && p.ledger.Held() != 0 {
				t.Errorf("%s, seed %d: %d reservations are left", policy, seed, p.ledger.Held())
			}
			for i, v := range s.engines.servers {
				if v.active() != 0 || len(v.live) != 0 {
					t.Errorf("%s, seed %d: backend %d still has %d requests", policy, seed, i, v.active())
				}
			}
		}
	}
}

func TestBackendThatIsAddedTakesNothingBefore(t *testing.T) {
	var list []trace.Request
	for i := range uint64(20) {
		list = append(list, prompt(i, 500))
	}
	cfg := Config{Policy: "round-robin", Backends: 2, Profile: round, Disturb: []Disturbance{{At: 450 * time.Millisecond, Kind: AddBackend, Target: 1}}}
	s, _ := play(t, cfg, singles(50*time.Millisecond, list...))
	// Nine requests arrive before, eleven after.
	if a, b := s.engines.servers[0].computed, s.engines.servers[1].computed; a+b != 20*500 || b < 5*500 || b > 6*500 {
		t.Errorf("computed %d and %d", a, b)
	}
}

func TestClientsWaitForTheOnlyNode(t *testing.T) {
	cfg := Config{Policy: "cost", Profile: round, Disturb: []Disturbance{
		{At: 0, Kind: KillNode}, {At: 5500 * time.Millisecond, Kind: StartNode},
	}}
	s, r := play(t, cfg, singles(time.Millisecond, prompt(1, 300)))
	if r.Failed != 0 || s.loop.now < 6*time.Second || r.TTFT.Mean > 1 {
		t.Errorf("ended at %v: %+v", s.loop.now, r)
	}
	cfg.Disturb = cfg.Disturb[:1]
	if s, r = play(t, cfg, singles(time.Millisecond, prompt(1, 300))); r.Failed != 1 || s.loop.now < patience || s.loop.now > patience+2*time.Second {
		t.Errorf("ended at %v: %+v", s.loop.now, r)
	}
}

func TestEveryRequestEndsOnceInAnySchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, backends := rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 3).Draw(t, "backends")
		disturbance := rapid.Custom(func(t *rapid.T) Disturbance {
			d := Disturbance{
				At: time.Duration(rapid.IntRange(0, 20_000).Draw(t, "at")) * 500 * time.Microsecond, Kind: Kind(rapid.IntRange(1, 5).Draw(t, "kind")),
				Down: time.Duration(rapid.IntRange(0, 4).Draw(t, "down")) * time.Second,
			}
			most := backends
			if d.Kind.ofNode() {
				most = nodes
			}
			d.Target = rapid.IntRange(0, most-1).Draw(t, "target")
			return d
		})
		cfg := Config{
			Policy: rapid.SampledFrom([]string{"cost", "round-robin", "smg", "oracle"}).Draw(t, "policy"), Nodes: nodes, Backends: backends,
			Profile: engine.Profile70B, Seed: rapid.Uint64().Draw(t, "seed"), Delay: time.Millisecond, Disturb: rapid.SliceOfN(disturbance, 0, 12).Draw(t, "disturbances"),
		}
		tr := talks(rapid.Uint64().Draw(t, "trace"), 15)
		s, err := newSimulation(cfg, tr)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.play(context.Background()); err != nil {
			t.Fatal(err)
		}
		r := s.result()
		if r.Requests != tr.Requests() || s.clients.open != 0 || len(s.clients.live) != 0 || r.Failed+len(r.TTFTs) < r.Requests {
			t.Fatalf("%d of %d ended, %d failed, %d first tokens", r.Requests, tr.Requests(), r.Failed, len(r.TTFTs))
		}
		for i, v := range s.engines.servers {
			if len(v.live) != 0 {
				t.Fatalf("backend %d still has %d requests", i, len(v.live))
			}
		}
		if p, ok := s.gate.(*product); ok && p.ledger.Held() != 0 {
			t.Fatalf("%d reservations are left", p.ledger.Held())
		}
		if m, ok := s.gate.(*many); ok {
			if why := m.atRest(); why != "" {
				t.Fatal(why)
			}
		}
	})
}
