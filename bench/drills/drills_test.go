package drills

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvca/bench/fake"
	"kvca/bench/nodes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how many times what is promised a node may take here, where other
// tests want the same cores. `bench/run drills` holds it to the promise.
const patience = 4

// build builds kvca as it is.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kvca")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "kvca/cmd/kvca")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build kvca: %v\n%s", err, text)
	}
	return path
}

// newRig starts three nodes in front of backends.
func newRig(t *testing.T) *Rig {
	t.Helper()
	cfg := Fakes()
	fleet, err := fake.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fleet.Close() }) // which cuts streams that are held
	places, err := nodes.Local(3)
	if err != nil {
		t.Fatal(err)
	}
	c, err := nodes.Start(t.Context(), nodes.Config{Kvca: build(t), Dir: t.TempDir(), Places: places, Backends: fleet.URLs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return New(c, func(context.Context) (fake.Stats, error) { return fleet.Stats(), nil }, cfg.Model)
}

// TestLostNodesHarmNobodyAndReturn does the drills on one cluster, one after the
// other. Each ends with no load anywhere and all maps the same.
func TestLostNodesHarmNobodyAndReturn(t *testing.T) {
	r, ctx := newRig(t), t.Context() // of all drills: a node that is started again lives on
	logs := func(t *testing.T) {
		if t.Failed() {
			for _, n := range r.Cluster.Nodes {
				t.Logf("%s: %s", n.Place.Name, n.Log())
			}
		}
	}
	t.Run("killed", func(t *testing.T) {
		defer logs(t)
		k, err := r.Kill(ctx)
		if err != nil {
			t.Fatalf("%v; so far %+v", err, k)
		}
		t.Logf("%+v", *k)
		if k.Others.Failed > 0 || k.Others.Requests == 0 {
			t.Errorf("%d of %d requests at the others failed: %v", k.Others.Failed, k.Others.Requests, k.Others.Err)
		}
		if k.LoadGone > patience*2*time.Second || k.Owned > patience*6*time.Second {
			t.Errorf("load gone after %v, owned again after %v", k.LoadGone, k.Owned)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		defer logs(t)
		s, err := r.Stop(ctx, 3*time.Second)
		if err != nil {
			t.Fatalf("%v; so far %+v", err, s)
		}
		t.Logf("%+v", *s)
		for what, seen := range map[string]Seen{"before": s.Before, "while stopped": s.During, "after": s.After} {
			if seen.Failed > 0 {
				t.Errorf("%s: %d of %d requests at the others failed: %v", what, seen.Failed, seen.Requests, seen.Err)
			}
		}
		if s.During.Slowest > 5*time.Second {
			t.Errorf("a request at another node took %v while one was stopped", s.During.Slowest)
		}
	})
}
