package backend

import (
	"testing"
	"time"

	"kvca/router"
)

// failAll reports failures of two prompts to a backend until its breaker would open.
func failAll(b *Backend, f Failure) {
	for chain := range uint64(4) {
		b.Report(f, chain%2)
	}
}

func (f *fleet) broken() int {
	n := 0
	for _, b := range f.All() {
		if b.Standing() == router.Broken {
			n++
		}
	}
	return n
}

func TestNeverMoreThanHalfOfAPoolIsEjected(t *testing.T) {
	for size, most := range map[int]int{1: 0, 2: 1, 3: 1, 4: 2, 5: 2} {
		inFleet(t, size, PoolConfig{}, func(t *testing.T, f *fleet) {
			for _, facts := range f.All() {
				failAll(f.Of(facts), BadStatus)
			}
			if got := f.broken(); got != most {
				t.Fatalf("%d of %d ejected, want %d", got, size, most)
			}
		})
	}
}

func TestHalfOfEachModelsPoolStaysIn(t *testing.T) {
	inFleet(t, 4, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.engines["d"].set(func(e *engine) { e.models = []string{"m", "only-d"} })
		time.Sleep(time.Minute)
		failAll(f.backend("d"), BadStatus)
		f.wantStanding("d", router.Available)
		failAll(f.backend("a"), BadStatus)
		f.wantStanding("a", router.Broken)
	})
}

func TestPromptThatFailsEverywhereEjectsNone(t *testing.T) {
	inFleet(t, 4, PoolConfig{}, func(t *testing.T, f *fleet) {
		for range 20 {
			for _, facts := range f.All() {
				f.Of(facts).Report(BadStatus, 42)
			}
		}
		if got := f.broken(); got != 0 {
			t.Fatalf("%d ejected", got)
		}
	})
}

func TestClientErrorsAreNoFailures(t *testing.T) {
	for status, want := range map[int]Failure{200: NoFailure, 400: NoFailure, 404: NoFailure, 429: NoFailure, 500: BadStatus, 501: NoFailure, 502: BadStatus, 503: BadStatus} {
		if got := Classify(nil, status); got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
	}
}

func TestEjectedBackendReturnsThroughAProbeAndARequest(t *testing.T) {
	inFleet(t, 2, PoolConfig{}, func(t *testing.T, f *fleet) {
		b := f.backend("a")
		failAll(b, BadStatus)
		f.wantStanding("a", router.Broken)
		time.Sleep(850 * time.Millisecond)
		f.wantStanding("a", router.Broken)
		time.Sleep(250 * time.Millisecond)
		f.wantStanding("a", router.Available)
		if got := b.Status(); got.Breaker != "half-open" || got.Speed > 0.2 {
			t.Fatalf("breaker %s, speed %v", got.Breaker, got.Speed)
		}
		b.Report(BadStatus, 9) // one is enough now, and it stays out for longer
		f.wantStanding("a", router.Broken)
		time.Sleep(1700 * time.Millisecond)
		f.wantStanding("a", router.Broken)
		time.Sleep(400 * time.Millisecond)
		f.wantStanding("a", router.Available)
		b.Report(NoFailure, 9)
		if got := b.Status().Breaker; got != "closed" {
			t.Fatalf("breaker %s after a success", got)
		}
	})
}

func TestSuccessClosesAnOpenBreaker(t *testing.T) {
	inFleet(t, 2, PoolConfig{}, func(t *testing.T, f *fleet) {
		b := f.backend("a")
		failAll(b, BadStatus)
		f.wantStanding("a", router.Broken)
		b.Report(NoFailure, 1) // tried for lack of another
		f.wantStanding("a", router.Available)
	})
}

func TestProbeThatFailsKeepsABrokenBackendOut(t *testing.T) {
	inFleet(t, 2, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.engines["a"].set(func(e *engine) { e.health = 500 })
		failAll(f.backend("a"), BadStatus)
		time.Sleep(time.Minute)
		f.wantStanding("a", router.Unhealthy)
		f.engines["a"].set(func(e *engine) { e.health = 200 })
		time.Sleep(4 * time.Second)
		f.wantStanding("a", router.Available)
		if got := f.backend("a").Status().Breaker; got != "closed" {
			t.Fatalf("breaker %s after an outage", got)
		}
	})
}

func TestDialTimeoutsOpenTheBreaker(t *testing.T) {
	inFleet(t, 2, PoolConfig{HealthInterval: time.Hour}, func(t *testing.T, f *fleet) {
		f.network.mu.Lock()
		f.network.black["a:80"] = true
		f.network.mu.Unlock()
		b := f.backend("a")
		for range 3 {
			start := time.Now()
			_, err := post(t.Context(), b)
			if got := Classify(err, 0); got != ConnectFailure || time.Since(start) != 2*time.Second {
				t.Fatalf("%v (%v) after %v", got, err, time.Since(start))
			}
			b.Report(ConnectFailure, 1)
		}
		f.wantStanding("a", router.Broken)
	})
}
