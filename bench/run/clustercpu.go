package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kvca/bench/load"
	"kvca/bench/nodes"
	"kvca/bench/report"
)

// clusterShape is one kind of request whose CPU is compared between one node and
// several.
type clusterShape struct {
	name  string
	bytes int
	// fresh prompts are all new, follow ones are the next turns of those before;
	// else it is one prompt that all nodes know.
	fresh, follow bool
	// most is what several nodes may take, as a multiple of what one takes.
	most float64
}

var clusterShapes = []clusterShape{
	{name: "2 kB, new prompts", bytes: 2 << 10, fresh: true, most: 1.5},
	{name: "2 kB, follow-ups", bytes: 2 << 10, follow: true, most: 1.5},
	{name: "2 kB, one prompt", bytes: 2 << 10, most: 1.5},
	{name: "32 kB, new prompts", bytes: 32 << 10, fresh: true, most: 1.25},
	{name: "32 kB, follow-ups", bytes: 32 << 10, follow: true, most: 1.25},
	{name: "32 kB, one prompt", bytes: 32 << 10, most: 1.25},
}

// clusterCost compares the CPU of a request at several nodes with that at one,
// at the same rate of requests.
type clusterCost struct {
	*cpuRun
	rate float64
	// groups are the one node, as many as in the cluster that know nothing of each
	// other, and the cluster; cost is their CPU of a request in microseconds by
	// shape and round, served their requests a second.
	groups [3][]*nodes.Node
	cost   [3][][]float64
	served [3][][]float64
	seed   uint64
}

// The groups. What alone costs more than one is what it costs to do the same
// work in several processes that are less busy each; the rest of what together
// costs is the cluster's.
const (
	one = iota
	alone
	together
)

// runClusterCPU lets both take turns in front of the same backends.
func runClusterCPU(ctx context.Context, c *cpuRun, sizes []int, rate float64) (err error) {
	if len(sizes) != 1 || sizes[0] < 2 {
		return errors.New("want one number of nodes, 2 or more, which are compared with one")
	}
	r, err := newClusterRig(ctx, c.settings, clusterFakes(0))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	cc := &clusterCost{cpuRun: c, rate: rate, seed: c.settings.seed << 32}
	for i := range 2 + sizes[0] {
		group, size := min(i, alone), 1
		if i == 1+sizes[0] {
			group, size = together, sizes[0]
		}
		started, err := r.cluster(ctx, size)
		if err != nil {
			return err
		}
		defer started.Close()
		cc.groups[group] = append(cc.groups[group], started.Nodes...)
	}
	for i := range cc.groups {
		cc.cost[i], cc.served[i] = make([][]float64, len(clusterShapes)), make([][]float64, len(clusterShapes))
	}
	if err := cc.measure(ctx); err != nil {
		return err
	}
	return cc.print(r, sizes[0])
}

func (c *clusterCost) measure(ctx context.Context) error {
	for round := range c.rounds {
		for i := range clusterShapes {
			for turn := range c.groups {
				if err := c.visit(ctx, (turn+round)%len(c.groups), i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// visit loads one group for one slice, after a tenth of it to warm up; where it is
// follow-ups, after the turns before them.
func (c *clusterCost) visit(ctx context.Context, which, shape int) error {
	list, s := c.groups[which], clusterShapes[shape]
	c.seed++
	before := s
	before.fresh, before.follow = s.fresh || s.follow, false
	warm := c.slice / 10
	if s.follow {
		warm = c.slice * 11 / 10
	}
	if _, err := c.load(ctx, list, before, warm); err != nil {
		return err
	}
	if s.fresh {
		c.seed++
	}
	return c.meter(ctx, which, shape)
}

// meter measures one slice of a group's load.
func (c *clusterCost) meter(ctx context.Context, which, shape int) error {
	list := c.groups[which]
	before, err := cpuOf(list)
	if err != nil {
		return err
	}
	res, err := c.load(ctx, list, clusterShapes[shape], c.slice)
	if err != nil {
		return err
	}
	after, err := cpuOf(list)
	if err != nil {
		return err
	}
	c.cost[which][shape] = append(c.cost[which][shape], float64((after-before).Microseconds())/float64(max(res.OK, 1)))
	c.served[which][shape] = append(c.served[which][shape], float64(res.OK)/res.Elapsed.Seconds())
	return ctx.Err()
}

// load asks the nodes evenly, at the run's rate for all of them together.
func (c *clusterCost) load(ctx context.Context, list []*nodes.Node, s clusterShape, d time.Duration) (*load.Result, error) {
	requests := load.Same(load.Chat(model, s.bytes, false, 1))
	switch {
	case s.fresh:
		requests = load.Distinct(model, s.bytes, 1<<40, c.seed)
	case s.follow:
		requests = load.FollowUps(model, s.bytes, 1<<40, c.seed)
	}
	return evenly(ctx, list, load.Closed{Connections: connections, Requests: requests, Rate: c.rate, Duration: d, Timeout: requestTime})
}

// evenly divides a loop's connections and its rate among nodes.
func evenly(ctx context.Context, list []*nodes.Node, loop load.Closed) (*load.Result, error) {
	results := make([]*load.Result, len(list))
	loop.Connections = max(1, loop.Connections/len(list))
	loop.Rate /= float64(len(list))
	var running sync.WaitGroup
	for i, n := range list {
		one := loop
		one.Addr = n.Client
		running.Go(func() { results[i] = one.Run(ctx) })
	}
	running.Wait()
	total := &load.Result{}
	for _, res := range results {
		total.Merge(res)
	}
	if total.Failed > 0 {
		return total, fmt.Errorf("%d requests failed: %w", total.Failed, total.Err)
	}
	return total, ctx.Err()
}

func (c *clusterCost) print(r *rig, n int) error {
	r.Printf("CPU microseconds of a request of all nodes together, medians of %d rounds of %v in turns, %.0f requests a second, %d backends\n\n",
		c.rounds, c.slice, c.rate, clusterBackends)
	several := fmt.Sprintf("%d nodes", n)
	t := &report.Table{Header: []string{
		"request", "1 node", several + " alone", several, "times 1 node", "by round", "times " + several + " alone", "requests/s, " + several,
	}}
	ratios, least := make([]float64, len(clusterShapes)), make([]float64, len(clusterShapes))
	for i, s := range clusterShapes {
		var each []float64
		for k := range c.cost[one][i] {
			each = append(each, c.cost[together][i][k]/c.cost[one][i][k])
		}
		single, apart, whole := median(c.cost[one][i]), median(c.cost[alone][i]), median(c.cost[together][i])
		ratios[i], least[i] = whole/single, apart/single
		t.Add(s.name, fmt.Sprintf("%.0f", single), fmt.Sprintf("%.0f", apart), fmt.Sprintf("%.0f", whole), fmt.Sprintf("%.2f", ratios[i]),
			spread(each), fmt.Sprintf("%.2f", whole/apart), fmt.Sprintf("%.0f", median(c.served[together][i])))
	}
	r.Printf("%s\n", t)
	var err error
	for i, s := range clusterShapes {
		err = errors.Join(err, r.judgeHere(ratios[i] > 0 && ratios[i] <= s.most, least[i] <= s.most,
			"%s take %.2f times one node's CPU, promised at most %.2f; nodes that share nothing take %.2f times", s.name, ratios[i], s.most, least[i]))
	}
	if !c.strict {
		return nil
	}
	return err
}

// spread lists values in order of size.
func spread(values []float64) string {
	var list []string
	for _, v := range slices.Sorted(slices.Values(values)) {
		list = append(list, fmt.Sprintf("%.2f", v))
	}
	return strings.Join(list, " ")
}
