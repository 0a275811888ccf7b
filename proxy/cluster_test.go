package proxy

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"kvca/proxy/backend"
	"kvca/router"
)

// pair stands for a cluster of two nodes.
type pair struct {
	ready   atomic.Bool
	drained []string
	changed []string
	refuse  error
}

func (p *pair) Added(c backend.Config) error {
	if p.refuse == nil {
		p.changed = append(p.changed, "added "+c.ID+" "+c.URL)
	}
	return p.refuse
}

func (p *pair) Limits(int) []LimitUse {
	return []LimitUse{{Tenant: "acme", Owner: "there", Limit: Rates{RequestsPerSecond: 10}, Here: Rates{RequestsPerSecond: 2}}}
}

func (p *pair) Removed(id string) { p.changed = append(p.changed, "removed "+id) }

func (p *pair) Ready() bool { return p.ready.Load() }

func (p *pair) Drained(id string, on bool) {
	if on {
		p.drained = append(p.drained, id)
	} else {
		p.drained = append(p.drained, "not "+id)
	}
}

func (p *pair) Status() ClusterStatus {
	return ClusterStatus{
		Members: []Member{
			{Name: "here", State: "alive", Ready: true, Link: "self", Owned: 1},
			{Name: "there", State: "suspect", Link: "down", RTTMS: 0.5, Owned: 1, Held: 3, Dirty: true},
		},
		Owner:      func(id string) string { return map[string]string{"e0": "here"}[id] },
		Generation: func(string) uint64 { return 7 },
		Health:     map[string]map[string]string{"e0": {"there": "unhealthy"}},
		Refused:    2, Degraded: 1,
		Divergence: map[string]int64{"there": 12},
	}
}

// inPair gives the rig's gateway an admin API that is in a pair.
func inPair(g *rig) *pair {
	p := new(pair)
	p.ready.Store(true)
	g.admin = start(g.T, NewAdmin(AdminConfig{Proxy: g.proxy, Map: g.blocks, Ledger: g.ledger, Gatherer: g.registry, Cluster: p}), g.proxy.config().Logger)
	return p
}

func TestStatusShowsTheCluster(t *testing.T) {
	g := newRig(t, 1)
	inPair(g)
	_, text := g.adminDo("GET", "/cluster/status", "")
	var s struct {
		Members  []Member
		Backends []struct {
			Owner      string
			Generation uint64
			Health     string
			Peers      map[string]string
		}
		Reservations struct{ Refused, Degraded int }
		Divergence   map[string]int64
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.Members, new(pair).Status().Members) {
		t.Errorf("members %+v", s.Members)
	}
	b := s.Backends[0]
	if b.Owner != "here" || b.Generation != 7 || b.Health != "healthy" || b.Peers["there"] != "unhealthy" {
		t.Errorf("backend %+v", b)
	}
	if s.Reservations.Refused != 2 || s.Reservations.Degraded != 1 || s.Divergence["there"] != 12 {
		t.Errorf("reservations %+v, divergence %v", s.Reservations, s.Divergence)
	}
}

func TestMetricsSayWhatTheClusterKnowsOfBackends(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *backend.PoolConfig) { c.Node = "here" })
	if err := g.proxy.RegisterCluster(g.registry, inPair(g)); err != nil {
		t.Fatal(err)
	}
	text := g.metrics()
	for _, want := range []string{
		`kvca_backend_owned{backend="e0"} 1`, `kvca_backend_generation{backend="e0"} 7`, `kvca_backend_health_differs{backend="e0"} 1`,
		`kvca_backend_own_requests{backend="e0"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestNodeIsReadyWhenItKnowsWhatItsPeersKnow(t *testing.T) {
	g := newRig(t, 1)
	p := inPair(g)
	for _, ready := range []bool{true, false, true} {
		p.ready.Store(ready)
		want := map[bool]int{true: 200, false: 503}[ready]
		if code, _ := g.adminDo("GET", "/readyz", ""); code != want {
			t.Errorf("cluster ready %v: status %d, want %d", ready, code, want)
		}
	}
}

func TestPeersAreToldOfDrains(t *testing.T) {
	g := newRig(t, 1)
	p := inPair(g)
	for _, path := range []string{"/backends/e0/drain", "/backends/none/drain", "/backends/e0/undrain"} {
		g.adminDo("POST", path, "")
	}
	if want := []string{"e0", "not e0"}; !reflect.DeepEqual(p.drained, want) {
		t.Errorf("told %q, want %q", p.drained, want)
	}
}

func TestPeersAreToldOfAddedAndRemovedBackends(t *testing.T) {
	g := newRig(t, 1)
	p := inPair(g)
	if err := g.pool.Add(backend.Config{ID: "learned", URL: g.engines[0].URL, Learned: true}); err != nil {
		t.Fatal(err)
	}
	g.adminDo("POST", "/backends", `{"url":"http://127.0.0.1:9"}`)
	g.adminDo("POST", "/backends", `{"id":"e0","url":"http://127.0.0.1:9"}`)
	for _, id := range []string{"127.0.0.1:9", "none", "learned", "e0"} {
		want := map[bool]int{true: 404, false: 204}[id == "none"]
		if code, text := g.adminDo("DELETE", "/backends/"+id, ""); code != want {
			t.Errorf("removing %s: %d %s", id, code, text)
		}
	}
	want := []string{"added 127.0.0.1:9 http://127.0.0.1:9", "removed 127.0.0.1:9", "removed learned", "removed e0"}
	if !reflect.DeepEqual(p.changed, want) || len(g.pool.All()) != 0 {
		t.Errorf("told %q, want %q; %d are left", p.changed, want, len(g.pool.All()))
	}
}

func TestABackendThatPeersCannotBeToldOfIsNotAdded(t *testing.T) {
	g := newRig(t, 1)
	inPair(g).refuse = errors.New("too long for them")
	code, text := g.adminDo("POST", "/backends", `{"id":"x","url":"http://127.0.0.1:9"}`)
	if code != 400 || !strings.Contains(text, "too long for them") || len(g.pool.All()) != 1 {
		t.Errorf("%d %s; %d backends", code, text, len(g.pool.All()))
	}
}
