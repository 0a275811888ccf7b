package drills

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/nodes"
)

// Rolled is what was seen of a rolling restart.
type Rolled struct {
	// Result is what clients saw, over all of it.
	*load.Result
	// Drain is the longest that a node took to end, Ready to be ready again.
	Drain, Ready time.Duration
	// BackendDrain is the longest that a backend took to have no request left, Back
	// from its start until every node found it healthy.
	BackendDrain, Back time.Duration
}

// readyEvery is how often the load balancer asks; nodes wait longer than that
// between not being ready and refusing connections.
const readyEvery = 100 * time.Millisecond

// Rolling restarts every node and then every backend, one by one and as an operator
// would, while clients behind a load balancer send rate requests a second, half of
// them streams.
func (r *Rig) Rolling(ctx context.Context, engines []*Engine, rate float64) (*Rolled, error) {
	rolled := &Rolled{}
	balancer := nodes.Watch(ctx, r.Cluster.Nodes, readyEvery)
	defer balancer.Close()
	loadCtx, stop := context.WithCancel(ctx)
	done := make(chan *load.Result, 1)
	r.Seed += 2
	clients := load.Balanced{
		Ready: balancer.Ready, Connections: 64, Rate: rate, Timeout: requestTime,
		Requests: load.Mixed(load.Distinct(r.Model, promptBytes, 1<<40, r.Seed-1), load.DistinctStreams(r.Model, promptBytes, 1<<40, r.Seed)),
	}
	go func() { done <- clients.Run(loadCtx) }()
	err := sleep(ctx, settle)
	for _, n := range r.Cluster.Nodes {
		if err == nil {
			err = r.rollNode(ctx, n, rolled)
		}
	}
	for _, e := range engines {
		if err == nil {
			err = r.rollBackend(ctx, e, rolled)
		}
	}
	if err == nil {
		err = sleep(ctx, settle)
	}
	stop()
	rolled.Result = <-done
	if err != nil {
		return rolled, err
	}
	_, err = r.await(ctx, "no load is left", func(ctx context.Context) error { return nodes.AtRest(ctx, r.Cluster.Nodes) })
	return rolled, err
}

func (r *Rig) rollNode(ctx context.Context, n *nodes.Node, rolled *Rolled) error {
	took, err := n.Drain(ctx, r.Limit)
	if err != nil {
		return err
	}
	rolled.Drain = max(rolled.Drain, took)
	if took, err = n.Restart(ctx, r.Limit); err != nil {
		return fmt.Errorf("start %s again: %w", n.Place.Name, err)
	}
	rolled.Ready = max(rolled.Ready, took)
	_, err = r.await(ctx, "the cluster is whole", r.whole(r.Cluster.Nodes))
	return err
}

func (r *Rig) rollBackend(ctx context.Context, e *Engine, rolled *Rolled) error {
	n := r.Cluster.Nodes[0]
	if err := n.DrainBackend(ctx, e.ID, true); err != nil {
		return err
	}
	took, err := r.await(ctx, "no node has a request on "+e.ID, r.each(func(b gateway.Backend) error {
		if b.ID == e.ID && (b.Health != "draining" || b.Active > 0) {
			return fmt.Errorf("%s is %s with %d active", b.ID, b.Health, b.Active)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	rolled.BackendDrain = max(rolled.BackendDrain, took)
	e.Close()
	if err := e.Run(ctx); err != nil {
		return err
	}
	if err := n.DrainBackend(ctx, e.ID, false); err != nil {
		return err
	}
	took, err = r.await(ctx, e.ID+" is healthy", r.each(func(b gateway.Backend) error {
		if b.ID == e.ID && b.Health != "healthy" {
			return fmt.Errorf("%s is %s", b.ID, b.Health)
		}
		return nil
	}))
	rolled.Back = max(rolled.Back, took)
	return err
}

// each looks at every backend as every node sees it.
func (r *Rig) each(look func(gateway.Backend) error) check {
	return func(ctx context.Context) error {
		statuses, err := nodes.Statuses(ctx, r.Cluster.Nodes)
		if err != nil {
			return err
		}
		var faults []error
		for _, s := range statuses {
			for _, b := range s.Backends {
				faults = append(faults, look(b))
			}
		}
		return errors.Join(faults...)
	}
}
