package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kvca/bench/fake"
	"kvca/bench/gateway"
	"kvca/bench/nodes"
	"kvca/bench/process"
)

const (
	// clusterNodes is how many nodes are measured where not said otherwise,
	// clusterBackends how many backends are behind them.
	clusterNodes    = 3
	clusterBackends = 8
)

// clusterFakes are the backends of a cluster.
func clusterFakes(delay time.Duration) fake.Config {
	cfg := fake.DefaultConfig()
	cfg.Backends, cfg.Delay = clusterBackends, delay
	return cfg
}

// newClusterRig starts backends and begins a report that says what is measured.
func newClusterRig(ctx context.Context, s *settings, cfg fake.Config) (*rig, error) {
	r, err := newRig(ctx, s, cfg)
	if err != nil {
		return nil, err
	}
	r.Printf("kvca %s\n\n", gateway.Version(ctx, "kvca", &r.env))
	return r, nil
}

// cluster starts n nodes in front of the rig's backends.
func (r *rig) cluster(ctx context.Context, n int) (*nodes.Cluster, error) {
	places, err := nodes.Local(n)
	if err != nil {
		return nil, err
	}
	return nodes.Start(ctx, r.clusterConfig(places))
}

func (r *rig) clusterConfig(places []nodes.Place) nodes.Config {
	return nodes.Config{Kvca: r.env.Kvca, Dir: r.env.Dir, Places: places, Backends: r.env.Backends, Flags: r.env.KvcaFlags}
}

// withCluster does something with a new cluster of n nodes.
func (r *rig) withCluster(ctx context.Context, n int, do func(c *nodes.Cluster) error) error {
	c, err := r.cluster(ctx, n)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// onCluster is a command that needs nothing but backends and a cluster.
func onCluster(ctx context.Context, s *settings, cfg fake.Config, n int, do func(r *rig, c *nodes.Cluster) error) (err error) {
	r, err := newClusterRig(ctx, s, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return r.withCluster(ctx, n, func(c *nodes.Cluster) error { return do(r, c) })
}

// counts reads a list of numbers with commas between them.
func counts(list string) ([]int, error) {
	var ns []int
	for field := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 || n > 32 {
			return nil, fmt.Errorf("%q is no number of nodes, want 1 to 32", field)
		}
		ns = append(ns, n)
	}
	return ns, nil
}

// cpuOf is the CPU time that the nodes have used so far.
func cpuOf(list []*nodes.Node) (time.Duration, error) {
	var sum time.Duration
	for _, n := range list {
		usage, err := process.UsageOf(n.PID)
		if err != nil {
			return 0, fmt.Errorf("read usage of %s: %w", n.Place.Name, err)
		}
		sum += usage.CPU
	}
	return sum, nil
}

// metricsOf asks all nodes for their metrics.
func metricsOf(ctx context.Context, list []*nodes.Node) ([]gateway.Metrics, error) {
	all := make([]gateway.Metrics, len(list))
	for i, n := range list {
		m, err := n.Metrics(ctx)
		if err != nil {
			return nil, err
		}
		all[i] = m
	}
	return all, nil
}

// atRest waits until no node knows of any load.
func atRest(ctx context.Context, list []*nodes.Node) error {
	if _, err := nodes.Await(ctx, 10*time.Second, func(ctx context.Context) error { return nodes.AtRest(ctx, list) }); err != nil {
		return fmt.Errorf("wait for rest: %w", err)
	}
	return nil
}
