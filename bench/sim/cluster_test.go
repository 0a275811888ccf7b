package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"kvca/bench/engine"
	"kvca/bench/trace"
	"kvca/state/ledger"
)

// atRest says what is left of load on some node, "" for nothing: what a node holds
// itself at once, what it believes of others after they have told it.
func (m *many) atRest() (why string) {
	m.each(func(l *life) {
		if n := l.ledger.Held(); n != 0 {
			why = fmt.Sprintf("%s holds %d reservations", l.name, n)
		}
	})
	return why
}

// playAndSettle plays, lets two minutes pass after the last request, and says what
// load is then still believed in somewhere.
func playAndSettle(t *testing.T, cfg Config, tr *trace.Trace) (r *Result, why string) {
	t.Helper()
	s, err := newSimulation(cfg, tr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.gate.close()
	if err := s.playOpen(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.result(), s.gate.(*many).settled(t)
}

func (m *many) settled(t *testing.T) (why string) {
	end := m.sim.loop.now + 2*time.Minute
	if err := m.sim.loop.run(t.Context(), func() bool { return m.sim.loop.now >= end }); err != nil {
		t.Fatal(err)
	}
	if why := m.atRest(); why != "" {
		return why
	}
	m.each(func(l *life) {
		for _, b := range l.node.present {
			if load := l.step.Loads().Load(b.Slot); load != (ledger.Load{}) {
				why = fmt.Sprintf("%s sees %+v on %s", l.name, load, b.ID)
			}
		}
	})
	return why
}

// tenants is a workload that shares prefixes and comes to several requests a second.
func tenants(seed uint64) *trace.Trace {
	return trace.Tenants(trace.TenantOptions{Seed: seed, Tenants: 10, SystemTokens: 3000, Rate: 4, Duration: time.Minute, Think: 5 * time.Second})
}

func TestManyNodesDecideAsOne(t *testing.T) {
	cfg := Config{Policy: "cost", Backends: 8, Profile: engine.Profile70B, Seed: 1, Delay: time.Millisecond}
	_, one := play(t, cfg, tenants(1))
	for _, nodes := range []int{2, 8} {
		cfg.Nodes = nodes
		r, why := playAndSettle(t, cfg, tenants(1))
		if r.Failed != 0 || r.Degraded != 0 || r.PeerBytesPerS == 0 {
			t.Errorf("%d nodes: %d failed, %d degraded, %v B/s", nodes, r.Failed, r.Degraded, r.PeerBytesPerS)
		}
		if r.HitRate < one.HitRate-0.01 || r.Kept < one.Kept-0.02 || r.LoadCoV > math.Max(one.LoadCoV*1.15, one.LoadCoV+0.02) {
			t.Errorf("%d nodes hit %.3f, kept %.3f, CoV %.3f; one %.3f, %.3f, %.3f", nodes, r.HitRate, r.Kept, r.LoadCoV, one.HitRate, one.Kept, one.LoadCoV)
		}
		if why != "" {
			t.Errorf("%d nodes: %s", nodes, why)
		}
	}
}

func TestManyNodesRepeatThemselves(t *testing.T) {
	run := func(seed uint64) string {
		_, r := play(t, Config{
			Policy: "cost", Nodes: 4, Backends: 6, Profile: engine.Profile32B, Seed: seed, Delay: 2 * time.Millisecond, Loss: 0.02,
			Disturb: []Disturbance{{At: 20 * time.Second, Kind: KillNode, Target: 1}, {At: 30 * time.Second, Kind: StartNode, Target: 1}},
		}, tenants(2))
		r.Seed = 0
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := run(1)
	if again := run(1); again != first {
		t.Errorf("%s\nthen %s", first, again)
	}
	if run(2) == first {
		t.Error("another seed changes nothing")
	}
}

// Whatever is lost and whoever dies, all load is given back everywhere.
func TestLoadsComeToRestOnManyNodes(t *testing.T) {
	for seed := range uint64(4) {
		r, why := playAndSettle(t, Config{
			Policy: "cost", Nodes: 3, Backends: 4, Profile: engine.Profile8B, Seed: seed, Delay: time.Millisecond, Loss: 0.05,
			Disturb: []Disturbance{
				{At: 10 * time.Second, Kind: KillNode, Target: 2},
				{At: 15 * time.Second, Kind: RestartBackend, Target: 1, Down: 5 * time.Second},
				{At: 25 * time.Second, Kind: StartNode, Target: 2},
				{At: 30 * time.Second, Kind: RemoveBackend, Target: 0},
				{At: 35 * time.Second, Kind: AddBackend, Target: 0},
			},
		}, tenants(seed))
		if r.Requests != tenants(seed).Requests() {
			t.Errorf("seed %d: %d requests ended", seed, r.Requests)
		}
		if why != "" {
			t.Errorf("seed %d: %s", seed, why)
		}
	}
}
