package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvca/bench/nodes"
	"kvca/bench/process"
	"kvca/bench/report"
)

// idleCores is what an idle node of a cluster may take of a core.
const idleCores = 0.02

// runIdle measures nodes that nobody asks for anything.
func runIdle(ctx context.Context, args []string) error {
	s := newSettings("idle", "")
	size := s.flags.Int("nodes", clusterNodes, "nodes")
	span := s.flags.Duration("time", 30*time.Second, "time that is measured")
	settle := s.flags.Duration("settle", 5*time.Second, "time before")
	if err := s.parse(args); err != nil {
		return err
	}
	return onCluster(ctx, s, clusterFakes(0), *size, func(r *rig, c *nodes.Cluster) error {
		if err := pause(ctx, *settle); err != nil {
			return err
		}
		before, err := usages(c.Nodes)
		if err != nil {
			return err
		}
		if err := pause(ctx, *span); err != nil {
			return err
		}
		after, err := usages(c.Nodes)
		if err != nil {
			return err
		}
		r.Printf("%d idle nodes with %d backends over %v\n\n", *size, clusterBackends, *span)
		t := &report.Table{Header: []string{"node", "core", "RSS, MB"}}
		worst := 0.0
		for i, n := range c.Nodes {
			cores := (after[i].CPU - before[i].CPU).Seconds() / span.Seconds()
			worst = max(worst, cores)
			t.Add(n.Place.Name, fmt.Sprintf("%.4f", cores), megabytes(after[i].RSS))
		}
		r.Printf("%s\n", t)
		return r.judge(worst < idleCores, "an idle node takes %.4f of a core at most, promised under %.2f", worst, idleCores)
	})
}

func usages(list []*nodes.Node) ([]process.Usage, error) {
	all, faults := make([]process.Usage, len(list)), make([]error, len(list))
	for i, n := range list {
		all[i], faults[i] = process.UsageOf(n.PID)
	}
	return all, errors.Join(faults...)
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
