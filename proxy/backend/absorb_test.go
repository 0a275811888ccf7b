package backend

import (
	"fmt"
	"testing"
	"time"
)

func vllm(start, running, waiting, tokens int) string {
	return fmt.Sprintf("process_start_time_seconds %d\nvllm:num_requests_running %d\nvllm:num_requests_waiting %d\n"+
		"vllm:kv_cache_usage_perc 0.5\nvllm:prompt_tokens_total %d\n"+
		"vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"100\"} 1\n", start, running, waiting, tokens)
}

func TestScrapedFactsReachTheRouter(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		f.slots.setActive("a", 3)
		f.engines["a"].set(func(e *engine) { e.metrics = vllm(1, 4, 6, 0) })
		time.Sleep(2 * time.Minute) // it had none: asked again after a minute
		facts := f.backend("a").Facts()
		if facts.Bypass() != 7 || f.slots.cache("a") != [2]int{1600, 16} {
			t.Fatalf("bypass %d, cache %v", facts.Bypass(), f.slots.cache("a"))
		}
		s := f.Status()[0]
		if s.Running != 4 || s.Waiting != 6 || s.KVUsage != 0.5 || s.CacheTokens != 1600 || s.Active != 3 {
			t.Fatalf("%+v", s)
		}
		f.slots.setActive("a", 30)
		time.Sleep(3 * time.Second)
		if facts.Bypass() != 0 {
			t.Fatalf("bypass %d, want 0: all of it is ours", facts.Bypass())
		}
	})
}

func TestStaleFactsAreDropped(t *testing.T) {
	inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
		e := newEngine(f.network, "a")
		e.metrics = vllm(1, 4, 6, 0)
		e.start()
		f.engines["a"] = e
		f.add(Config{ID: "a", URL: "http://a:80", CacheTokens: 5000})
		time.Sleep(time.Second)
		if f.backend("a").Facts().Bypass() != 10 {
			t.Fatalf("bypass %d", f.backend("a").Facts().Bypass())
		}
		if f.slots.cache("a") != [2]int{5000, 16} {
			t.Fatalf("cache %v: the configured size counts", f.slots.cache("a"))
		}
		e.set(func(e *engine) { e.metrics = "" })
		time.Sleep(3 * time.Second)
		if f.backend("a").Facts().Bypass() != 0 {
			t.Fatalf("bypass %d after the metrics are gone", f.backend("a").Facts().Bypass())
		}
	})
}

func TestRestartVoidsWhatWasLearned(t *testing.T) {
	cases := map[string]struct {
		before, after string
		outage        bool
		voids         int
	}{
		"same process":                 {vllm(100, 0, 0, 500), vllm(100, 0, 0, 600), false, 0},
		"later start time":             {vllm(100, 0, 0, 500), vllm(200, 0, 0, 600), false, 1},
		"another worker, older":        {vllm(100, 0, 0, 500), vllm(90, 0, 0, 20), false, 0},
		"counters fall":                {"tgi_request_count 9\n", "tgi_request_count 2\n", false, 1},
		"counters grow":                {"tgi_request_count 9\n", "tgi_request_count 12\n", false, 0},
		"refused, same process":        {vllm(100, 0, 0, 500), vllm(100, 0, 0, 500), true, 0},
		"refused, new process":         {vllm(100, 0, 0, 500), vllm(200, 0, 0, 0), true, 1},
		"refused, nothing to tell":     {"", "", true, 1},
		"refused, counters tell less":  {"tgi_request_count 9\n", "tgi_request_count 12\n", true, 1},
		"nothing to tell, not refused": {"", "", false, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
				e := newEngine(f.network, "a")
				e.metrics = c.before
				e.start()
				f.engines["a"] = e
				f.add(Config{ID: "a", URL: "http://a:80"})
				time.Sleep(time.Minute)
				if c.outage {
					e.kill()
					time.Sleep(10 * time.Second)
				}
				e.set(func(e *engine) { e.metrics = c.after })
				if c.outage {
					e.start()
				}
				time.Sleep(time.Minute)
				if got := f.slots.voided("a"); got != c.voids {
					t.Fatalf("voided %d times, want %d", got, c.voids)
				}
				if got := f.Status()[0].Generation; got != uint64(c.voids) {
					t.Fatalf("generation %d", got)
				}
			})
		})
	}
}

func TestOversizedMetricsAreAFailure(t *testing.T) {
	inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
		e := newEngine(f.network, "a")
		e.metrics = string(make([]byte, maxProbeBytes+1))
		e.start()
		f.engines["a"] = e
		f.add(Config{ID: "a", URL: "http://a:80"})
		time.Sleep(10 * time.Second)
		if got := f.backend("a").Status().counts.scrapeFailures; got == 0 {
			t.Fatal("no failure counted")
		}
	})
}
