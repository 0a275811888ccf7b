package drills

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvca/bench/nodes"
)

// Stopped is what was seen of a node that was stopped and continued.
type Stopped struct {
	// Before, During and After are what the clients of the other nodes saw.
	Before, During, After Seen
	// Own is what the clients of the stopped node saw.
	Own Seen
	// Whole is the time from going on until all nodes saw each other and agreed on
	// the owners, Exact until each knew the load of all.
	Whole, Exact time.Duration
}

// Stop stops the cluster's last node under load for a time and lets it go on. In
// the end nothing is left of any load.
func (r *Rig) Stop(ctx context.Context, pause time.Duration) (*Stopped, error) {
	victim := r.Cluster.Nodes[len(r.Cluster.Nodes)-1]
	others := r.Cluster.Others(victim)
	h, err := r.hold(ctx, r.Cluster.Nodes)
	if err != nil {
		return nil, err
	}
	defer h.leave()
	s := &Stopped{}
	own := r.begin(ctx, []*nodes.Node{victim})
	err = r.stop(ctx, s, victim, others, pause)
	s.Own = own.end()
	if err != nil {
		return s, err
	}
	began := time.Now()
	if _, err = r.await(ctx, "every load is exact", r.exact(r.Cluster.Nodes)); err != nil {
		return s, err
	}
	s.Exact = s.Whole + time.Since(began)
	return s, r.rest(ctx, h)
}

// stop loads the others before, while and after the victim is stopped. It goes
// on in any case.
func (r *Rig) stop(ctx context.Context, s *Stopped, victim *nodes.Node, others []*nodes.Node, pause time.Duration) error {
	before := r.begin(ctx, others)
	err := sleep(ctx, pause)
	s.Before = before.end()
	if err != nil {
		return err
	}
	during := r.begin(ctx, others)
	err = sleep(ctx, settle)
	if err == nil {
		err = victim.Stop()
	}
	if err == nil {
		err = sleep(ctx, pause)
	}
	s.During = during.end()
	if err = errors.Join(err, victim.Continue()); err != nil {
		return err
	}
	began := time.Now()
	after := r.begin(ctx, others)
	defer func() { s.After = after.end() }()
	if _, err = r.await(ctx, "the cluster is whole", r.whole(r.Cluster.Nodes)); err != nil {
		return fmt.Errorf("after %v: %w", pause, err)
	}
	s.Whole = time.Since(began)
	return nil
}
