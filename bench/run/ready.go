package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvca/bench/load"
	"kvca/bench/nodes"
)

const (
	// readyTime is how soon a new node must be ready.
	readyTime = 5 * time.Second
	// followUps is how many follow-ups a new node is asked about.
	followUps = 200
)

// filling is what the map of a cluster is filled with before a node joins.
type filling struct {
	locations int64
	bytes     int
	// prompts is how many prompts of bytes make the locations.
	prompts int64
	seed    uint64
}

// runReady lets a node join a cluster that knows much.
func runReady(ctx context.Context, args []string) (err error) {
	s := newSettings("ready", "")
	f := filling{}
	s.flags.Int64Var(&f.locations, "locations", 1<<20, "locations that the cluster knows")
	s.flags.IntVar(&f.bytes, "bytes", 128<<10, "length of the prompts that fill the map")
	rounds := s.flags.Int("rounds", 3, "times that a node joins")
	if err := s.parse(args); err != nil {
		return err
	}
	const block = 512 // bytes, kvca's default
	f.prompts, f.seed = f.locations/int64(f.bytes/block-1)+1, s.seed
	places, err := nodes.Local(clusterNodes)
	if err != nil {
		return err
	}
	r, err := newClusterRig(ctx, s, clusterFakes(0))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	c, err := nodes.Start(ctx, r.clusterConfig(places[:clusterNodes-1]))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := f.fill(ctx, r, c); err != nil {
		return err
	}
	return f.join(ctx, r, c, places[clusterNodes-1], *rounds)
}

// fill asks for distinct prompts until the cluster knows enough, and waits until
// all its nodes know the same.
func (f *filling) fill(ctx context.Context, r *rig, c *nodes.Cluster) error {
	began := time.Now()
	res, err := evenly(ctx, c.Nodes, load.Closed{
		Connections: connections / 2, Requests: load.Distinct(model, f.bytes, f.prompts, f.seed), Duration: 2 * time.Minute, Timeout: requestTime,
	})
	if err != nil {
		return err
	}
	took, err := nodes.Await(ctx, 30*time.Second, func(ctx context.Context) error { return nodes.SameMaps(ctx, c.Nodes) })
	if err != nil {
		return fmt.Errorf("wait until the maps are the same: %w", err)
	}
	status, err := c.Nodes[0].Status(ctx)
	if err != nil {
		return err
	}
	r.Printf("%d prompts of %d bytes at %d nodes in %.1f s, maps the same %.1f s later: %d locations\n\n", res.OK, f.bytes, len(c.Nodes),
		time.Since(began).Seconds()-took.Seconds(), took.Seconds(), status.BlockMap.Locations)
	if status.BlockMap.Locations < f.locations {
		return fmt.Errorf("%d locations were learned, want %d", status.BlockMap.Locations, f.locations)
	}
	return nil
}

// join starts the new node again and again, each time with nothing.
func (f *filling) join(ctx context.Context, r *rig, c *nodes.Cluster, p nodes.Place, rounds int) error {
	asked := f.followUps()
	n, took, err := c.StartOne(ctx, p)
	var slowest time.Duration
	matched, all := 0, 0
	for round := range rounds {
		if round > 0 {
			n.Kill()
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
			took, err = n.Restart(ctx, nodes.StartTime)
		}
		if err != nil {
			return err
		}
		got, err := matching(ctx, n, c.Nodes[0], asked)
		if err != nil {
			return err
		}
		status, err := n.Status(ctx)
		if err != nil {
			return err
		}
		r.Printf("round %d: ready after %.2f s, then %d of %d follow-ups matched as the first node matches them, %d locations when they had been asked\n",
			round+1, took.Seconds(), got, len(asked), status.BlockMap.Locations)
		slowest, matched, all = max(slowest, took), matched+got, all+len(asked)
	}
	r.Printf("\n")
	return errors.Join(
		r.judge(slowest < readyTime, "a new node was ready after %.2f s at most, promised within %v", slowest.Seconds(), readyTime),
		r.judge(float64(matched) >= keptAtLeast*float64(all), "it matched %d of %d follow-ups at once, want %.2f of them", matched, all, keptAtLeast),
	)
}

// followUps are follow-ups of prompts from all of the filling.
func (f *filling) followUps() [][]byte {
	var list [][]byte
	for i := range min(followUps, f.prompts) {
		k := 1 + i*f.prompts/followUps
		list = append(list, load.FollowUp(load.DistinctBody(model, f.bytes, min(k, f.prompts), f.seed), "An answer.", "And then?"))
	}
	return list
}

// matching counts the bodies of which a new node matches as many blocks as an
// old one does. The new one is asked for all of them first.
func matching(ctx context.Context, fresh, old *nodes.Node, bodies [][]byte) (same int, err error) {
	var got []int
	for _, b := range bodies {
		d, err := fresh.Explain(ctx, b)
		if err != nil {
			return 0, err
		}
		got = append(got, d.MatchedBlocks)
	}
	for i, b := range bodies {
		d, err := old.Explain(ctx, b)
		if err != nil {
			return 0, err
		}
		if d.MatchedBlocks > 0 && got[i] >= d.MatchedBlocks {
			same++
		}
	}
	return same, nil
}
