package backend

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kvca/router"
)

func TestBackendIsAvailableAfterItsFirstDiscovery(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.wantStanding("a", router.Available)
		if got := f.backend("a").Facts().Speed(); got != 1 {
			t.Fatalf("speed %v at the first start, want the whole weight", got)
		}
	})
}

func TestNoRequestAfterTheFirstRefusedConnectUntilHealthyAgain(t *testing.T) {
	inFleet(t, 2, PoolConfig{}, func(t *testing.T, f *fleet) {
		e, b := f.engines["a"], f.backend("a")
		e.kill()
		_, err := post(t.Context(), b)
		if Classify(err, 0) != ConnectFailure {
			t.Fatalf("got %v", err)
		}
		if got := b.Facts().Standing(); got != router.Unhealthy {
			t.Fatalf("standing %v as Do returns", got)
		}
		time.Sleep(time.Hour)
		f.wantStanding("a", router.Unhealthy)
		e.start()
		time.Sleep(5 * time.Second)
		f.wantStanding("a", router.Available)
		if !strings.Contains(f.log.String(), "backend unhealthy") || !strings.Contains(f.log.String(), "backend healthy") {
			t.Fatalf("log:\n%s", f.log)
		}
	})
}

func TestBackendReturnsWithinFiveSeconds(t *testing.T) {
	for _, down := range []time.Duration{time.Second, 30 * time.Second, 59900 * time.Millisecond, 10 * time.Minute} {
		inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
			f.engines["a"].kill()
			time.Sleep(3 * time.Second)
			f.wantStanding("a", router.Unhealthy)
			time.Sleep(down)
			f.engines["a"].start()
			time.Sleep(5 * time.Second)
			f.wantStanding("a", router.Available)
		})
	}
}

func TestHostThatVanishesIsFoundAndFoundAgain(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.engines["a"].kill()
		f.network.mu.Lock()
		f.network.black["a:80"] = true
		f.network.mu.Unlock()
		time.Sleep(9 * time.Second)
		f.wantStanding("a", router.Unhealthy)
		time.Sleep(5 * time.Minute)
		f.network.mu.Lock()
		f.network.black["a:80"] = false
		f.network.mu.Unlock()
		f.engines["a"].start()
		time.Sleep(5 * time.Second)
		f.wantStanding("a", router.Available)
	})
}

func TestTwoFailedChecksTakeABackendOutOneBringsItBack(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		e := f.engines["a"]
		e.set(func(e *engine) { e.health = 500 })
		before := e.asked("/health")
		for e.asked("/health") < before+1 {
			time.Sleep(100 * time.Millisecond)
		}
		f.wantStanding("a", router.Available)
		for e.asked("/health") < before+2 {
			time.Sleep(100 * time.Millisecond)
		}
		f.wantStanding("a", router.Unhealthy)
		e.set(func(e *engine) { e.health = 200 })
		time.Sleep(1200 * time.Millisecond)
		f.wantStanding("a", router.Available)
	})
}

func TestEngineThatLoadsIsStarting(t *testing.T) {
	inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
		e := newEngine(f.network, "a")
		e.health = 503
		e.start()
		f.engines["a"] = e
		f.add(Config{ID: "a", URL: "http://a:80"})
		if err := f.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		f.wantStanding("a", router.Starting)
		e.set(func(e *engine) { e.health = 200 })
		time.Sleep(4 * time.Second)
		f.wantStanding("a", router.Available)
		if got := f.backend("a").Facts().Speed(); got != 1 {
			t.Fatalf("speed %v: a first start is no return", got)
		}
	})
}

func TestLateAnswerOfABusyEngineIsExcused(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		e, b := f.engines["a"], f.backend("a")
		e.set(func(e *engine) { e.hang = true })
		for range 40 {
			time.Sleep(500 * time.Millisecond)
			b.Report(NoFailure, 1)
		}
		f.wantStanding("a", router.Available)
		time.Sleep(10 * time.Second)
		f.wantStanding("a", router.Unhealthy)
	})
}

func TestEngineWithoutHealthPathIsAskedForItsModels(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		e := f.engines["a"]
		e.set(func(e *engine) { e.health = 404 })
		time.Sleep(30 * time.Second)
		f.wantStanding("a", router.Available)
		e.set(func(e *engine) { e.models = nil }) // answers 404 there too
		time.Sleep(10 * time.Second)
		f.wantStanding("a", router.Unhealthy)
	})
}

func TestReturningBackendStartsSlowly(t *testing.T) {
	inFleet(t, 0, PoolConfig{SlowStart: 10 * time.Second}, func(t *testing.T, f *fleet) {
		e := newEngine(f.network, "a")
		e.start()
		f.engines["a"] = e
		f.add(Config{ID: "a", URL: "http://a:80", Weight: 4})
		time.Sleep(time.Second)
		e.kill()
		_, _ = post(t.Context(), f.backend("a"))
		e.start()
		for f.standing("a") != router.Available {
			time.Sleep(10 * time.Millisecond)
		}
		facts := f.backend("a").Facts()
		if got := facts.Speed(); got < 0.4 || got > 0.45 {
			t.Fatalf("speed %v at the return, want a tenth of 4", got)
		}
		time.Sleep(5 * time.Second)
		if got := facts.Speed(); got < 1.9 || got > 2.5 {
			t.Fatalf("speed %v half way, want about 2.2", got)
		}
		time.Sleep(6 * time.Second)
		if got := facts.Speed(); got != 4 {
			t.Fatalf("speed %v at the end, want 4", got)
		}
	})
}

func TestDrainOutranksHealth(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		if err := f.Drain("a"); err != nil {
			t.Fatal(err)
		}
		f.wantStanding("a", router.Draining)
		if status, err := post(t.Context(), f.backend("a")); status != 200 || err != nil {
			t.Fatalf("a request in flight: %d, %v", status, err)
		}
		if got := f.Status()[0].Health; got != "draining" {
			t.Fatalf("health %q", got)
		}
		f.engines["a"].kill()
		time.Sleep(5 * time.Second)
		f.wantStanding("a", router.Draining)
		if err := f.Undrain("a"); err != nil {
			t.Fatal(err)
		}
		if err := f.Undrain("a"); err != nil { // a peer's news of it
			t.Fatal(err)
		}
		if got := strings.Count(f.log.String(), "drain changed"); got != 2 {
			t.Fatalf("%d changes were logged:\n%s", got, f.log)
		}
		f.wantStanding("a", router.Unhealthy)
		f.engines["a"].start()
		time.Sleep(5 * time.Second)
		f.wantStanding("a", router.Available)
	})
}

func TestIdleBackendsAreAskedSeldom(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		e := f.engines["a"]
		e.set(func(e *engine) { e.metrics = "vllm:num_requests_running 0\n" })
		time.Sleep(5 * time.Minute)
		health, scrapes, models := e.asked("/health"), e.asked("/metrics"), e.asked("/v1/models")
		time.Sleep(10 * time.Minute)
		health, scrapes, models = e.asked("/health")-health, e.asked("/metrics")-scrapes, e.asked("/v1/models")-models
		if health < 240 || health > 340 || scrapes < 30 || scrapes > 45 || models < 105 || models > 130 {
			t.Fatalf("in 10 minutes: %d checks, %d scrapes, %d model lists", health, scrapes, models)
		}
		f.slots.setActive("a", 1)
		time.Sleep(3 * time.Second)
		scrapes = e.asked("/metrics")
		time.Sleep(10 * time.Second)
		if got := e.asked("/metrics") - scrapes; got < 8 || got > 12 {
			t.Fatalf("%d scrapes in 10 s of work, want one a second", got)
		}
	})
}

func TestProbesReuseTheirConnection(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		before := f.network.dialled("a:80")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := f.network.dialled("a:80") - before; got > 0 {
			t.Fatalf("%d new connections in a minute", got)
		}
	})
}

func TestLongHealthIntervalDoesNotDelayAReturn(t *testing.T) {
	inFleet(t, 1, PoolConfig{HealthInterval: time.Hour}, func(t *testing.T, f *fleet) {
		f.engines["a"].kill()
		_, _ = post(t.Context(), f.backend("a"))
		time.Sleep(10 * time.Minute)
		f.engines["a"].start()
		time.Sleep(5 * time.Second)
		f.wantStanding("a", router.Available)
	})
}
