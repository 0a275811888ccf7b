package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"kvca/bench/drills"
	"kvca/bench/netns"
	"kvca/bench/nodes"
)

// runPartition parts a cluster in network namespaces over a lossy wire. Where the
// machine can't have them it says why and is no failure.
func runPartition(ctx context.Context, args []string) (err error) {
	s := newSettings("partition", "")
	size := s.flags.Int("nodes", clusterNodes, "nodes; the first half of them is parted from the others")
	apart := s.flags.Duration("time", 30*time.Second, "how long they are parted")
	var f netns.Faults
	s.flags.DurationVar(&f.Delay, "delay", 500*time.Microsecond, "delay of a packet between nodes, each way")
	s.flags.Float64Var(&f.Loss, "loss", 0.01, "share of packets between nodes that are lost")
	if err := s.parse(args); err != nil {
		return err
	}
	names := make([]string, *size)
	for i := range names {
		names[i] = fmt.Sprintf("node-%d", i)
	}
	lab, err := netns.New(ctx, names, f)
	if errors.Is(err, netns.ErrMissing) {
		fmt.Println("partition: left out:", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	cfg := drills.Fakes()
	cfg.Host = lab.Machine()
	r, err := newClusterRig(ctx, s, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	c, err := nodes.Start(ctx, r.clusterConfig(spaces(lab, names)))
	if err != nil {
		return err
	}
	defer c.Close()
	r.Printf("%d nodes in network namespaces, %v and %.1f %% loss each way between them, parted for %v\n\n", *size, f.Delay, f.Loss*100, *apart)
	rig := drills.New(c, r.stats, model)
	rig.Limit = time.Minute
	p, err := rig.Partition(ctx, lab, *apart)
	if err != nil {
		return err
	}
	return judgePartition(r, lab, p)
}

// spaces are the places of the nodes in a lab.
func spaces(lab *netns.Lab, names []string) []nodes.Place {
	places := make([]nodes.Place, len(names))
	for i, name := range names {
		host, peers := lab.Host(i), lab.Peers(i)
		places[i] = nodes.Place{
			Name: name, Enter: lab.Enter(i), Client: net.JoinHostPort(host, "8080"), Admin: net.JoinHostPort(host, "8081"),
			Gossip: net.JoinHostPort(peers, "7946"), Link: net.JoinHostPort(peers, "7947"),
		}
	}
	return places
}

func judgePartition(r *rig, lab *netns.Lab, p *drills.Parted) error {
	n := lab.Counts()
	r.Printf("packets: %d carried, %d lost, %d cut, %d dropped\nbefore: %d requests, %d failed, p50 %s ms, slowest %s ms\n",
		n.Carried, n.Lost, n.Cut, n.Dropped, p.Before.Requests, p.Before.Failed, millis(p.Before.Median), millis(p.Before.Slowest))
	var failed int64
	for i, d := range p.During {
		r.Printf("part %d: %d requests, %d failed, p50 %s ms, slowest %s ms%s\n", i+1, d.Requests, d.Failed, millis(d.Median), millis(d.Slowest), because(d.Err))
		failed += d.Failed
	}
	r.Printf("\n")
	return errors.Join(
		r.judge(p.Before.Failed+failed == 0 && p.During[0].Requests > 0 && p.During[1].Requests > 0, "both parts served, %d requests failed", p.Before.Failed+failed),
		r.judge(p.Owned <= healed, "each part had owners of its own for all backends after %s s", secs(p.Owned)),
		r.judge(p.Whole <= healed, "all nodes saw each other %s s after the healing, promised %v", secs(p.Whole), healed),
		r.judge(p.Exact <= healed, "every load was exact %s s after it, promised %v", secs(p.Exact), healed),
		r.judge(p.Same <= healed, "all maps were the same %s s after it, %d locations, promised %v", secs(p.Same), p.Locations, healed),
		r.judge(true, "no load left at rest"),
	)
}
