package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/nodes"
	"kvca/bench/report"
)

// sharedSpread is what the busiest backend may serve over the mean where all
// conversations have the system prompt in common.
const sharedSpread = 1.25

// clusterAffinity plays conversations of which every turn goes to a random node.
func clusterAffinity(ctx context.Context, s *settings, sizes []int, talk load.Talk, delay time.Duration) (err error) {
	out, err := s.report()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	out.Printf("kvca %s\n\n%d conversations of %d turns, each turn to a random node, %d backends that answer in %v, %d turns at the same time\n\n",
		gateway.Version(ctx, "kvca", &gateway.Env{Kvca: absolute(s.kvca)}), talk.Conversations, talk.Turns, clusterBackends, delay, talk.Connections)
	t := &report.Table{Header: []string{
		"nodes", "conversations", "follow-ups kept", "lost at turn 2/3/...", "requests per backend", "max/mean", "p50, ms", "failed", "degraded", "as promised",
	}}
	for _, n := range sizes {
		for _, m := range mixes {
			talk.SystemBytes, talk.Shared, talk.UserBytes = m.systemBytes, m.shared, m.userBytes
			err = errors.Join(err, clusterAffinityRow(ctx, s, t, n, m, talk, delay))
		}
	}
	out.Printf("%s", t)
	return err
}

func clusterAffinityRow(ctx context.Context, s *settings, t *report.Table, n int, m mix, talk load.Talk, delay time.Duration) error {
	r, err := newQuietRig(ctx, s, clusterFakes(delay))
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	return r.withCluster(ctx, n, func(c *nodes.Cluster) error {
		talk.Addrs = nodes.Addrs(c.Nodes)
		res := talk.Run(ctx)
		stats, err := r.stats(ctx)
		if err != nil {
			return err
		}
		degraded, err := degradedAt(ctx, c.Nodes)
		if err != nil {
			return err
		}
		a, most := load.AffinityOf(stats.Served, clusterBackends), m.spread
		if m.shared {
			most = sharedSpread
		}
		verdict := "yes"
		if a.Share() < keptAtLeast || a.Spread() > most || res.Failed > 0 {
			verdict, err = "no", errBroken
		}
		t.Add(n, m.name, fmt.Sprintf("%.3f", a.Share()), slashed(a.Lost), slashed(a.PerBackend), fmt.Sprintf("%.2f", a.Spread()),
			fmt.Sprintf("%.1f", res.Latency.Quantile(0.5).Seconds()*1e3), res.Failed, degraded, verdict)
		return errors.Join(err, res.Err, atRest(ctx, c.Nodes))
	})
}

// degradedAt is how many reservations the nodes have made without the owner.
func degradedAt(ctx context.Context, list []*nodes.Node) (sum int64, err error) {
	all, err := nodes.Statuses(ctx, list)
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		sum += s.Reservations.Degraded
	}
	return sum, nil
}
