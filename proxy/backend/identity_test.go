package backend

import (
	"reflect"
	"testing"
	"time"

	"kvca/router"
)

// Another engine at an address that is known starts with nothing.
func TestAnotherEngineAtTheSameAddressStartsWithNothing(t *testing.T) {
	down := 10 * time.Second
	for name, c := range map[string]struct {
		before, after   string // metrics
		listed, listing string
		outage          time.Duration
		voids           int
	}{
		"another model":                   {"", "", listing("/m", "m"), listing("/n", "n"), 0, 1},
		"other weights under its name":    {"", "", listing("/m-1", "m"), listing("/m-2", "m"), 0, 1},
		"one more model":                  {"", "", listing("/m", "m"), `{"data":[{"id":"m","root":"/m"},{"id":"n","root":"/n"}]}`, 0, 0},
		"adapters only":                   {"", "", listing("/m", "m", "x"), listing("/m", "m", "y", "z"), 0, 0},
		"the list is empty for a while":   {"", "", listing("/m", "m"), `{"data":[]}`, 0, 0},
		"an older engine after an outage": {vllm(100_000, 0, 0, 500), vllm(50_000, 0, 0, 900), listing("/m", "m"), listing("/m", "m"), down, 1},
		"a worker, older by seconds":      {vllm(100_000, 0, 0, 500), vllm(99_990, 0, 0, 500), listing("/m", "m"), listing("/m", "m"), down, 0},
		"an older worker without outage":  {vllm(100_000, 0, 0, 500), vllm(50_000, 0, 0, 500), listing("/m", "m"), listing("/m", "m"), 0, 0},
		"restarted with another model":    {vllm(100, 0, 0, 500), vllm(200, 0, 0, 0), listing("/m", "m"), listing("/n", "n"), down, 1},
		"a newer one, then the same":      {vllm(100, 0, 0, 500), vllm(200, 0, 0, 500), listing("/m", "m"), listing("/m", "m"), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
				e := f.engines["a"]
				e.set(func(e *engine) { e.metrics, e.listing = c.before, c.listed })
				time.Sleep(90 * time.Second)
				voided := f.slots.voided("a")
				if c.outage > 0 {
					e.kill()
					time.Sleep(c.outage)
				}
				e.set(func(e *engine) { e.metrics, e.listing = c.after, c.listing })
				if c.outage > 0 {
					e.start()
				}
				time.Sleep(2 * time.Minute)
				if got := f.slots.voided("a") - voided; got != c.voids {
					t.Fatalf("voided %d times, want %d:\n%s", got, c.voids, f.log)
				}
			})
		})
	}
}

func TestABackendIsChangedInPlace(t *testing.T) {
	inFleet(t, 1, PoolConfig{Zone: "here"}, func(t *testing.T, f *fleet) {
		e := f.engines["a"]
		e.set(func(e *engine) { e.metrics = vllm(1, 0, 0, 5) })
		time.Sleep(2 * time.Minute)
		b := f.backend("a")
		change := func(c Config) {
			t.Helper()
			c.ID, c.URL = "a", "http://a:80"
			if err := f.Change(c); err != nil {
				t.Fatal(err)
			}
		}
		change(Config{Weight: 3, Models: []string{"x", "y"}, CacheTokens: 777, Zone: "there"})
		if got := f.Status()[0]; got.Weight != 3 || got.Speed != 3 || got.CacheTokens != 777 || got.Zone != "there" || !reflect.DeepEqual(got.Models, []string{"x", "y"}) {
			t.Errorf("status %+v", got)
		}
		if b.Facts().Speed() != 3 || !b.Facts().Remote() || f.serving("x") != "a" || f.serving("m") != "" || f.slots.cache("a") != [2]int{777, 16} {
			t.Errorf("speed %v, remote %v, cache %v", b.Facts().Speed(), b.Facts().Remote(), f.slots.cache("a"))
		}
		change(Config{Zone: "here"})
		time.Sleep(time.Minute)
		if got := f.Status()[0]; got.Weight != 1 || !reflect.DeepEqual(got.Models, []string{"m"}) || b.Facts().Remote() || f.slots.cache("a")[0] == 777 {
			t.Errorf("as before: %+v, cache %v", got, f.slots.cache("a"))
		}
		if f.slots.voided("a") != 0 || f.backend("a") != b {
			t.Error("it lost what was known of it")
		}
		for _, c := range []Config{{ID: "nobody", URL: "http://a:80"}, {ID: "a", URL: "nonsense"}} {
			if f.Change(c) == nil {
				t.Errorf("%+v was taken", c)
			}
		}
	})
}

func TestARemoteBackendIsOneOfAnotherZone(t *testing.T) {
	for _, c := range []struct {
		node, backend string
		remote        bool
	}{{"", "", false}, {"a", "", false}, {"", "a", false}, {"a", "a", false}, {"a", "b", true}} {
		inFleet(t, 0, PoolConfig{Zone: c.node}, func(t *testing.T, f *fleet) {
			f.add(Config{ID: "x", URL: "http://x:80", Zone: c.backend})
			if got := f.backend("x").Facts().Remote(); got != c.remote {
				t.Errorf("node in %q, backend in %q: remote %v", c.node, c.backend, got)
			}
		})
	}
}

func TestABackendMayBeAddedDraining(t *testing.T) {
	inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
		e := newEngine(f.network, "x")
		e.start()
		f.engines["x"] = e
		f.add(Config{ID: "x", URL: "http://x:80", Draining: true})
		if got := f.backend("x").Facts().Standing(); got != router.Draining {
			t.Errorf("standing %v as it is added", got)
		}
		time.Sleep(5 * time.Second)
		f.wantStanding("x", router.Draining)
		if err := f.Undrain("x"); err != nil {
			t.Fatal(err)
		}
		f.wantStanding("x", router.Available)
	})
}
