package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvca/bench/fake"
	"kvca/bench/load"
	"kvca/bench/nodes"
	"kvca/bench/report"
)

// runBurst sends requests at the same moment to idle backends and counts how many
// each of them got.
func runBurst(ctx context.Context, args []string) error {
	s := newSettings("burst", "")
	size := s.flags.Int("nodes", clusterNodes, "nodes, which get the requests in turns")
	requests := s.flags.Int("requests", 40, "requests of a burst")
	rounds := s.flags.Int("rounds", 20, "bursts")
	delay := s.flags.Duration("delay", 300*time.Millisecond, "time until a backend answers")
	if err := s.parse(args); err != nil {
		return err
	}
	return onCluster(ctx, s, clusterFakes(*delay), *size, func(r *rig, c *nodes.Cluster) error {
		r.Printf("%d simultaneous requests over %d nodes, %d idle backends that answer in %v, new prompts of 2 kB\n\n", *requests, *size, clusterBackends, *delay)
		t := &report.Table{Header: []string{"round", "requests per backend", "least", "most", "failed", "took"}}
		even := 0
		for round := range *rounds {
			ok, err := burst(ctx, r, c, t, round, *requests)
			if err != nil {
				return err
			}
			if ok {
				even++
			}
		}
		how, err := decidedSoFar(ctx, c.Nodes)
		if err != nil {
			return err
		}
		r.Printf("%s\nreservations: %s\n\n", t, how)
		return r.judge(even == *rounds, "%d of %d bursts were spread evenly within one request", even, *rounds)
	})
}

// burst sends one burst and tells whether it was even.
func burst(ctx context.Context, r *rig, c *nodes.Cluster, t *report.Table, round, requests int) (bool, error) {
	if err := atRest(ctx, c.Nodes); err != nil {
		return false, err
	}
	before, err := r.stats(ctx)
	if err != nil {
		return false, err
	}
	b := load.Burst{Addrs: nodes.Addrs(c.Nodes), Timeout: requestTime}
	for i := range requests {
		b.Bodies = append(b.Bodies, load.Chat(model, 2<<10, false, uint64(round*requests+i)+r.seed<<32))
	}
	res := b.Run(ctx)
	after, err := r.stats(ctx)
	if err != nil {
		return false, err
	}
	got, least, most := perBackend(before, after)
	t.Add(round+1, slashed(got), least, most, res.Failed, res.Elapsed.Round(time.Millisecond))
	mean := float64(requests) / float64(len(got))
	return res.Failed == 0 && float64(least) >= mean-1 && float64(most) <= mean+1, errors.Join(ctx.Err(), wrap("burst", res.Err))
}

// perBackend is what each backend was asked between two readings.
func perBackend(before, after fake.Stats) (got []int, least, most int) {
	for i, b := range after.Backends {
		n := int(b.Requests - before.Backends[i].Requests)
		got = append(got, n)
		if i == 0 {
			least = n
		}
		least, most = min(least, n), max(most, n)
	}
	return got, least, most
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
