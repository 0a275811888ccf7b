package backend

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestChangesThatPeersShouldKnowAreTold(t *testing.T) {
	var told atomic.Int64
	inFleet(t, 1, PoolConfig{OnChange: func() { told.Add(1) }}, func(t *testing.T, f *fleet) {
		e := newEngine(f.network, "x")
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"added", func() { f.add(Config{ID: "x", URL: "http://x:80"}); time.Sleep(5 * time.Second) }},
			{"healthy", func() { e.start(); time.Sleep(5 * time.Second) }},
			{"drained", func() { f.Drain("x") }},
			{"undrained", func() { f.Undrain("x") }},
			{"unhealthy", func() { e.kill(); time.Sleep(10 * time.Second) }},
			{"removed", func() { f.Remove("x") }},
		} {
			before := told.Load()
			step.do()
			synctest.Wait()
			if told.Load() == before {
				t.Errorf("%s: nobody was told", step.name)
			}
		}
		before := told.Load()
		time.Sleep(time.Minute)
		if n := told.Load() - before; n != 0 {
			t.Errorf("told %d times of nothing", n)
		}
	})
}

func TestLearnedBackendGoesAsItCame(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.add(Config{ID: "x", URL: "http://x:80", Learned: true})
		if s := f.Status(); s[0].Learned || !s[1].Learned {
			t.Errorf("status %+v", s)
		}
		if err := f.Remove("x"); !errors.Is(err, ErrLearned) {
			t.Errorf("removing a learned backend: %v", err)
		}
		if err := f.Forget("a"); !errors.Is(err, ErrUnknown) {
			t.Errorf("forgetting a configured backend: %v", err)
		}
		if err := f.Forget("x"); err != nil {
			t.Error(err)
		}
		if err := f.Forget("x"); !errors.Is(err, ErrUnknown) {
			t.Errorf("forgetting it again: %v", err)
		}
	})
}

// Peers may see what this node does not; however many do, and however often they
// say so, the engine is asked once a second.
func TestHintsCauseOneProbeASecond(t *testing.T) {
	inFleet(t, 1, PoolConfig{HealthInterval: time.Minute}, func(t *testing.T, f *fleet) {
		time.Sleep(10 * time.Second)
		before := f.engines["a"].asked("/health")
		for range 100 {
			f.Probe("a")
			f.Probe("unknown")
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		if n := f.engines["a"].asked("/health") - before; n < 4 || n > 5 {
			t.Errorf("%d probes in 5 s of hints, want one a second", n)
		}
	})
}

func TestHintFindsADeadBackend(t *testing.T) {
	inFleet(t, 1, PoolConfig{HealthInterval: time.Minute}, func(t *testing.T, f *fleet) {
		time.Sleep(10 * time.Second)
		if f.backend("a").Health() != "healthy" {
			t.Fatal("not healthy")
		}
		f.engines["a"].kill()
		f.Probe("a")
		time.Sleep(time.Second)
		if got := f.backend("a").Health(); got != "unhealthy" {
			t.Errorf("after a hint it is %s", got)
		}
	})
}
