package drills

import (
	"context"
	"fmt"
	"time"

	"kvca/bench/gateway"
	"kvca/bench/nodes"
)

// Killed is what was seen of a node that was killed.
type Killed struct {
	// Others is what the clients of the other nodes saw.
	Others Seen
	// LoadGone is the time from the kill until no other node counted the killed
	// one's load, Owned until its backends had new owners that all agree on.
	LoadGone, Owned time.Duration
	// Ready is the time from the start of a node with the same name until it was
	// ready, Whole until all saw it and each knew the others' load.
	Ready, Whole time.Duration
}

// settle is how long load runs before and after what is done to a node.
const settle = 500 * time.Millisecond

// Kill kills the cluster's last node under load and starts it again. In the end
// nothing is left of any load.
func (r *Rig) Kill(ctx context.Context) (*Killed, error) {
	victim := r.Cluster.Nodes[len(r.Cluster.Nodes)-1]
	others := r.Cluster.Others(victim)
	h, err := r.hold(ctx, r.Cluster.Nodes)
	if err != nil {
		return nil, err
	}
	defer h.leave()
	k := &Killed{}
	doomed, spared := r.begin(ctx, []*nodes.Node{victim}), r.begin(ctx, others)
	err = r.kill(ctx, k, victim, others)
	k.Others = spared.end()
	doomed.end()
	if err != nil {
		return k, err
	}
	if _, err = r.await(ctx, "the others' load is exact", r.exact(others)); err != nil {
		return k, err
	}
	began := time.Now()
	if k.Ready, err = victim.Restart(ctx, r.Limit); err != nil {
		return k, fmt.Errorf("start the killed node again: %w", err)
	}
	if err = r.together(ctx); err != nil {
		return k, err
	}
	k.Whole = time.Since(began)
	return k, r.rest(ctx, h)
}

// kill kills the victim and watches the others.
func (r *Rig) kill(ctx context.Context, k *Killed, victim *nodes.Node, others []*nodes.Node) error {
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	victim.Kill()
	began := time.Now()
	if _, err := r.await(ctx, "the killed node's load is gone", func(ctx context.Context) error { return onlyOf(ctx, others) }); err != nil {
		return err
	}
	k.LoadGone = time.Since(began)
	if _, err := r.await(ctx, "its backends have other owners", func(ctx context.Context) error { return nodes.Owned(ctx, others) }); err != nil {
		return err
	}
	k.Owned = time.Since(began)
	return sleep(ctx, settle)
}

// onlyOf finds fault where a node counts more load than the list's own nodes can
// have: their streams and their short requests.
func onlyOf(ctx context.Context, list []*nodes.Node) error {
	all, err := nodes.Statuses(ctx, list)
	if err != nil {
		return err
	}
	most := int64(len(list) * (holders + loops))
	for _, s := range all {
		if n := active(s); n > most {
			return fmt.Errorf("%s counts %d requests, of which %d at most are its own and its peers'", s.Node, n, most)
		}
	}
	return nil
}

func active(s *gateway.Status) (sum int64) {
	for _, b := range s.Backends {
		sum += b.Active
	}
	return sum
}
