package drills

import (
	"context"
	"errors"
	"time"

	"kvca/bench/nodes"
)

// Net is a network that can be cut into parts.
type Net interface {
	// Partition lets nodes reach only those of their own part, by name.
	Partition(parts ...[]string)
	Heal()
}

// Parted is what was seen of a cluster that was in two parts for a time.
type Parted struct {
	// Before, and During at each part, are what clients saw.
	Before Seen
	During [2]Seen
	// Owned is the time from the cut until each part had owners of its own for
	// all backends.
	Owned time.Duration
	// Whole, Exact and Same are the times from the healing until all nodes saw each
	// other, each knew the load of all, and all maps were the same.
	Whole, Exact, Same time.Duration
	// Locations is how many the maps hold then.
	Locations int64
}

// Partition parts the first half of the cluster's nodes from the others for a
// time, under load, and heals it. In the end nothing is left of any load.
func (r *Rig) Partition(ctx context.Context, net Net, pause time.Duration) (*Parted, error) {
	all := r.Cluster.Nodes
	parts := [2][]*nodes.Node{all[:len(all)/2], all[len(all)/2:]}
	h, err := r.hold(ctx, all)
	if err != nil {
		return nil, err
	}
	defer func() { h.leave() }()
	p := &Parted{}
	before := r.begin(ctx, all)
	err = sleep(ctx, 2*time.Second)
	p.Before = before.end()
	if err != nil {
		return p, err
	}
	net.Partition(names(parts[0]), names(parts[1]))
	more, err := r.apart(ctx, p, parts, pause)
	h = append(h, more...)
	net.Heal()
	if err != nil {
		return p, err
	}
	if err := r.reunite(ctx, p); err != nil {
		return p, err
	}
	return p, r.rest(ctx, h)
}

// apart loads both parts while they are apart, with streams that the other part
// can't know of.
func (r *Rig) apart(ctx context.Context, p *Parted, parts [2][]*nodes.Node, pause time.Duration) (held, error) {
	end := time.Now().Add(pause)
	var running [2]*traffic
	for i, part := range parts {
		running[i] = r.begin(ctx, part)
	}
	defer func() {
		for i, t := range running {
			p.During[i] = t.end()
		}
	}()
	took, err := r.await(ctx, "each part has owners of its own", func(ctx context.Context) error {
		return errors.Join(nodes.Owned(ctx, parts[0]), nodes.Owned(ctx, parts[1]))
	})
	if err != nil {
		return nil, err
	}
	p.Owned = took
	h, err := r.holdUnseen(ctx, r.Cluster.Nodes)
	if err != nil {
		return h, err
	}
	return h, sleep(ctx, time.Until(end))
}

// reunite measures how long it takes until the parts are one again.
func (r *Rig) reunite(ctx context.Context, p *Parted) (err error) {
	began, all := time.Now(), r.Cluster.Nodes
	for _, goal := range []struct {
		what string
		is   check
		took *time.Duration
	}{
		{"the cluster is whole", r.whole(all), &p.Whole},
		{"every load is exact", r.exact(all), &p.Exact},
		{"all maps are the same", r.same(all), &p.Same},
	} {
		if _, err = r.await(ctx, goal.what, goal.is); err != nil {
			return err
		}
		*goal.took = time.Since(began)
	}
	s, err := all[0].Status(ctx)
	if err == nil {
		p.Locations = s.BlockMap.Locations
	}
	return err
}

func names(list []*nodes.Node) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.Place.Name
	}
	return out
}
