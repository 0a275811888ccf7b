package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kvca/bench/trace"
)

// workloads are what can be generated, at the seed and as many times as fast. Each
// keeps eight backends busy and leaves their queues short, of the profile 70b, of
// 32b for ladder73.
var workloads = map[string]func(seed uint64, speed float64) *trace.Trace{
	"tenants":  tenants,
	"ladder37": func(seed uint64, speed float64) *trace.Trace { return ladder(trace.Ladder37, 10, seed, speed) },
	"ladder73": func(seed uint64, speed float64) *trace.Trace { return ladder(trace.Ladder73, 10, seed, speed) },
	"burst":    burst,
}

func workloadNames() []string { return slices.Sorted(maps.Keys(workloads)) }

func generate(name string, seed uint64, speed float64) *trace.Trace {
	return workloads[name](seed, speed)
}

// tenants is conversations of twenty tenants, each with a system prompt of its own.
func tenants(seed uint64, speed float64) *trace.Trace {
	return trace.Tenants(trace.TenantOptions{
		Name: "tenants", Seed: seed, Tenants: 20, SystemTokens: 8000, Rate: 3 * speed, Duration: 10 * time.Minute,
	})
}

// ladder is a rung of llm-d's ladders, at rate requests a second.
func ladder(o trace.LadderOptions, rate float64, seed uint64, speed float64) *trace.Trace {
	o.Seed, o.Rate, o.Duration = seed, rate*speed, 2*time.Minute
	return trace.Ladder(o)
}

// burst is fewer conversations, and two hundred questions about one long document
// within two seconds.
func burst(seed uint64, speed float64) *trace.Trace {
	return trace.Burst(trace.BurstOptions{
		Name: "burst", At: time.Minute, Over: 2 * time.Second, Requests: int(200 * speed),
		PrefixTokens: 12_000, QuestionTokens: 200, OutputTokens: 200,
		Background: trace.TenantOptions{Seed: seed, Tenants: 20, SystemTokens: 8000, Rate: 2 * speed, Duration: 3 * time.Minute},
	})
}

// keepFirst leaves so many requests at most, in whole sessions; 0 leaves all.
func keepFirst(t *trace.Trace, limit int) error {
	if limit == 0 {
		return nil
	}
	requests := 0
	for i := range t.Sessions {
		if requests += len(t.Sessions[i].Requests); requests > limit {
			t.Sessions = t.Sessions[:i]
			break
		}
	}
	if len(t.Sessions) == 0 {
		return fmt.Errorf("the first session has more than %d requests: want a greater --limit", limit)
	}
	return nil
}
