package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/nodes"
	"kvca/bench/report"
)

// ownerCall is the product's own histogram of the time of a call to an owner.
const ownerCall = "kvca_cluster_owner_call_seconds"

// What a call to an owner may take on loopback.
const (
	ownerCallMedian = 100 * time.Microsecond
	ownerCallP99    = time.Millisecond
)

// runOwnerCalls reads how long owners took to answer under load.
func runOwnerCalls(ctx context.Context, args []string) error {
	s := newSettings("owner-calls", "")
	size := s.flags.Int("nodes", clusterNodes, "nodes, which get the requests evenly")
	rate := s.flags.Float64("rate", 1000, "requests a second of all nodes together")
	bytes := s.flags.Int("bytes", 2<<10, "length of a prompt")
	delay := s.flags.Duration("delay", 10*time.Millisecond, "time until a backend answers")
	span := s.flags.Duration("time", 20*time.Second, "time that is measured")
	if err := s.parse(args); err != nil {
		return err
	}
	return onCluster(ctx, s, clusterFakes(*delay), *size, func(r *rig, c *nodes.Cluster) error {
		before, err := metricsOf(ctx, c.Nodes)
		if err != nil {
			return err
		}
		late := watchLateness(ctx)
		bare, err := r.callBare(ctx, *rate/float64(*size))
		if err != nil {
			return err
		}
		res, err := evenly(ctx, c.Nodes, load.Closed{
			Connections: 3 * connections, Requests: load.Distinct(model, *bytes, 1<<40, s.seed), Rate: *rate, Duration: *span, Timeout: requestTime,
		})
		worst := late.end()
		barely, barely99, bareErr := bare.end()
		if err = errors.Join(err, bareErr); err != nil {
			return err
		}
		after, err := metricsOf(ctx, c.Nodes)
		if err != nil {
			return err
		}
		r.Printf("%d nodes, %.0f requests a second of %d bytes in all, %d backends that answer in %v; this machine woke a sleeper up to %v late\n\n",
			*size, float64(res.OK)/res.Elapsed.Seconds(), *bytes, clusterBackends, *delay, worst.Round(10*time.Microsecond))
		r.Printf("bare calls between two further processes meanwhile, %d bytes there and back: p50 %d us, p99 %d us\n\n",
			bareCall, barely.Microseconds(), barely99.Microseconds())
		return judgeOwnerCalls(r, c, before, after, res.OK, barely, barely99)
	})
}

func judgeOwnerCalls(r *rig, c *nodes.Cluster, before, after []gateway.Metrics, requests int64, barely, barely99 time.Duration) error {
	t := &report.Table{Header: []string{"node", "calls", "p50, us", "p90, us", "p99, us", "p99.9, us"}}
	var all gateway.Histogram
	for i, n := range c.Nodes {
		h := after[i].Histogram(ownerCall).Minus(before[i].Histogram(ownerCall))
		all = all.Plus(h)
		t.Add(callRow(n.Place.Name, h)...)
	}
	t.Add(callRow("all", all)...)
	r.Printf("%s\n%d calls for %d requests; times are the edges of the product's own buckets\nreservations: %s\n\n", t, all.Count(), requests,
		decided(before, after))
	_, median := all.Quantile(0.5)
	_, p99 := all.Quantile(0.99)
	return errors.Join(
		r.judge(all.Count() > 0, "%d calls were counted", all.Count()),
		r.judgeHere(median <= ownerCallMedian, barely <= ownerCallMedian,
			"half of the calls took %s, promised at most %v; of bare ones %v", atMost(all.Quantile(0.5)), ownerCallMedian, barely.Round(time.Microsecond)),
		r.judgeHere(p99 <= ownerCallP99, barely99 <= ownerCallP99,
			"99 of 100 took %s, promised at most %v; of bare ones %v", atMost(all.Quantile(0.99)), ownerCallP99, barely99.Round(time.Microsecond)),
	)
}

func callRow(name string, h gateway.Histogram) []any {
	row := []any{name, h.Count()}
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		lower, upper := h.Quantile(q)
		if upper == math.MaxInt64 {
			row = append(row, fmt.Sprintf("over %d", lower.Microseconds()))
			continue
		}
		row = append(row, fmt.Sprintf("%d to %d", lower.Microseconds(), upper.Microseconds()))
	}
	return row
}

// atMost says what is known of a quantile's upper end.
func atMost(lower, upper time.Duration) string {
	if upper == math.MaxInt64 {
		return fmt.Sprintf("over %v", lower)
	}
	return fmt.Sprintf("at most %v", upper)
}
