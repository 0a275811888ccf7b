package backend

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"kvca/router"
)

func TestAddAndRemoveAtRuntime(t *testing.T) {
	inFleet(t, 2, PoolConfig{}, func(t *testing.T, f *fleet) {
		if err := f.Add(Config{ID: "a", URL: "http://other"}); !errors.Is(err, ErrExists) {
			t.Fatalf("add twice: %v", err)
		}
		for _, err := range []error{f.Remove("zz"), f.Drain("zz"), f.Undrain("zz")} {
			if !errors.Is(err, ErrUnknown) {
				t.Fatalf("unknown: %v", err)
			}
		}
		a := f.backend("a")
		before, _ := f.Model("m")
		if err := f.Remove("a"); err != nil {
			t.Fatal(err)
		}
		after, _ := f.Model("m")
		if len(before) != 2 || len(after) != 1 || after[0].ID != "b" || len(f.All()) != 1 {
			t.Fatalf("members %v, then %v", before, after)
		}
		if f.Of(a.Facts()) != nil || !reflect.DeepEqual(f.slots.removed, []string{"a"}) {
			t.Fatal("a removed backend is still there")
		}
		if status, err := post(t.Context(), a); status != 200 || err != nil {
			t.Fatalf("a request that was routed before: %d, %v", status, err)
		}
		f.add(Config{ID: "a", URL: "http://a:80"})
		time.Sleep(time.Second)
		f.wantStanding("a", router.Available)
	})
}

func TestModelIsKnownWhileABackendThatServedItIsConfigured(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		if _, known := f.Model("other"); known {
			t.Fatal("a model nobody serves is known")
		}
		f.engines["a"].kill()
		time.Sleep(time.Hour)
		if list, known := f.Model("m"); !known || len(list) != 1 {
			t.Fatalf("down: %v %v", list, known)
		}
		f.engines["a"].set(func(e *engine) { e.models = []string{"n"} })
		f.engines["a"].start()
		time.Sleep(5 * time.Second)
		if list, known := f.Model("m"); !known || len(list) != 0 {
			t.Fatalf("no longer served: %v %v", list, known)
		}
		if list, known := f.Model("n"); !known || len(list) != 1 {
			t.Fatalf("new model: %v %v", list, known)
		}
		if got := f.Models(); !reflect.DeepEqual(got, []string{"n"}) {
			t.Fatalf("models %v", got)
		}
		if err := f.Remove("a"); err != nil {
			t.Fatal(err)
		}
		if _, known := f.Model("m"); known {
			t.Fatal("known without a backend")
		}
	})
}

func TestConfiguredModelsOverrideTheEngine(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.add(Config{ID: "x", URL: "http://a:80", Models: []string{"mine", "m"}})
		time.Sleep(time.Minute)
		if got := f.Status()[1].Models; !reflect.DeepEqual(got, []string{"m", "mine"}) {
			t.Fatalf("models %v", got)
		}
		f.add(Config{ID: "down", URL: "http://nobody:80", Models: []string{"z"}})
		if list, known := f.Model("z"); !known || len(list) != 1 || list[0].Standing() == router.Available {
			t.Fatal("a configured model is known at once")
		}
	})
}

func TestNewModelsAreDiscovered(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.engines["a"].set(func(e *engine) { e.models = []string{"m", "adapter"} })
		time.Sleep(7 * time.Second)
		if list, _ := f.Model("adapter"); len(list) != 1 {
			t.Fatal("not discovered")
		}
		f.engines["a"].set(func(e *engine) { e.models = nil })
		synctest.Wait()
		if !strings.Contains(f.log.String(), "backend models changed") {
			t.Fatal("not logged")
		}
	})
}

func TestModelCardsAreMerged(t *testing.T) {
	a := &Backend{config: Config{ID: "a"}}
	a.setCards([]ModelCard{{ID: "m", OwnedBy: "vllm", Root: "/a", MaxModelLen: 4096, Created: 5}})
	b := &Backend{config: Config{ID: "b", Models: []string{"m", "q"}}}
	b.serve(b.config.Models)
	b.setCards([]ModelCard{{ID: "m", MaxModelLen: 2048}, {ID: "unlisted"}})
	p := &Pool{backends: map[string]*Backend{"a": a, "b": b}}
	want := []ModelCard{
		{ID: "m", Object: "model", OwnedBy: "vllm", Root: "/a", MaxModelLen: 2048, Created: 5},
		{ID: "q", Object: "model", OwnedBy: "kvca"},
	}
	if got := p.ModelCards(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v", got)
	}
}

func TestReadyWaitsForEveryFirstDiscovery(t *testing.T) {
	cases := map[string]struct {
		prepare func(n *network, e *engine)
		wait    time.Duration
	}{
		"up":      {func(_ *network, e *engine) { e.start() }, 0},
		"refused": {func(*network, *engine) {}, 0},
		"hangs":   {func(_ *network, e *engine) { e.hang = true; e.start() }, 2 * time.Second},
		"vanish":  {func(n *network, _ *engine) { n.black["x:80"] = true }, 2 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
				e := newEngine(f.network, "x")
				c.prepare(f.network, e)
				start := time.Now()
				f.add(Config{ID: "x", URL: "http://x:80"})
				// One that answers may have done so by now; one that hangs has not.
				if c.wait > 0 && f.Ready() {
					t.Fatal("ready at once")
				}
				if err := f.WaitReady(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(start); got < c.wait || got > 3*time.Second {
					t.Fatalf("ready after %v, want about %v", got, c.wait)
				}
				if e.server != nil {
					e.kill()
				}
			})
		})
	}
}

func TestBackendAddedLaterDoesNotEndReadiness(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		time.Sleep(time.Minute)
		f.network.black["x:80"] = true
		f.add(Config{ID: "x", URL: "http://x:80"})
		if !f.Ready() {
			t.Fatal("not ready")
		}
	})
}

func TestWaitReadyEndsWithItsContext(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.network.black["x:80"] = true
		f.add(Config{ID: "x", URL: "http://x:80"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.WaitReady(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestClosedPoolTakesNoMore(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.Close()
		f.Close()
		if err := f.Add(Config{URL: "http://y"}); !errors.Is(err, ErrClosed) {
			t.Fatalf("got %v", err)
		}
		hits := f.engines["a"].asked("/health")
		time.Sleep(time.Minute)
		if f.engines["a"].asked("/health") != hits {
			t.Fatal("still probing")
		}
	})
}

func TestReadsOfTheViewDoNotAllocate(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(t *testing.T, f *fleet) {
		b := f.backend("a")
		if n := testing.AllocsPerRun(100, func() {
			list, _ := f.Model("m")
			_ = f.All()
			f.Of(list[0]).Report(NoFailure, 1)
		}); n != 0 {
			t.Fatalf("%v allocations", n)
		}
		_ = b
	})
}

func TestMetricsAreCleanAndEndWithTheirBackend(t *testing.T) {
	reg := prometheus.NewRegistry()
	inFleet(t, 2, PoolConfig{Registerer: reg}, func(t *testing.T, f *fleet) {
		f.engines["a"].set(func(e *engine) { e.metrics = vllm(1, 2, 3, 4) })
		time.Sleep(2 * time.Minute)
		failAll(f.backend("b"), BadStatus)
		text := gather(t, reg)
		for _, want := range []string{
			`kvca_backend_up{backend="a"} 1`, `kvca_backend_up{backend="b"} 0`,
			`kvca_backend_standing{backend="b",standing="broken"} 1`,
			`kvca_backend_breaker_opens_total{backend="b",reason="status"} 1`,
			`kvca_backend_engine_running_requests{backend="a"} 2`,
			`kvca_backend_engine_cache_tokens{backend="a"} 1600`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil || len(problems) > 0 {
			t.Errorf("lint: %v %v", problems, err)
		}
		if err := f.Remove("b"); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(gather(t, reg), `backend="b"`) {
			t.Error("a removed backend's series remain")
		}
		if _, err := NewPool(PoolConfig{Registerer: reg}, f.slots); err == nil {
			t.Error("two pools in one registry")
		}
	})
	if got := gather(t, reg); got != "" {
		t.Errorf("after Close: %s", got)
	}
}

func gather(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// Readers, reports, drains, additions and removals at the same time: the race
// detector looks on.
func TestPoolUnderChange(t *testing.T) {
	inFleet(t, 4, PoolConfig{}, func(t *testing.T, f *fleet) {
		stop := time.Now().Add(20 * time.Second)
		for i := range 4 {
			go func() {
				for n := 0; time.Now().Before(stop); n++ {
					list, _ := f.Model("m")
					for _, facts := range list {
						if b := f.Of(facts); b != nil {
							b.Report(Failure((n+i)%7), uint64(n))
							_, _ = post(t.Context(), b)
						}
					}
					f.Status()
					f.ModelCards()
					time.Sleep(time.Duration(10+i) * time.Millisecond)
				}
			}()
		}
		for time.Now().Before(stop) {
			_ = f.Drain("b")
			_ = f.Remove("c")
			time.Sleep(300 * time.Millisecond)
			_ = f.Undrain("b")
			_ = f.Add(Config{ID: "c", URL: "http://c:80"})
			time.Sleep(300 * time.Millisecond)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		for _, s := range f.Status() {
			if s.Standing != "available" {
				t.Errorf("%+v", s)
			}
		}
	})
}
