package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kvca/bench/fake"
	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/process"
	"kvca/bench/report"
)

// shape is one kind of request whose CPU is measured.
type shape struct {
	name   string
	bytes  int
	stream bool
	// most is the CPU that kvca may take, as a multiple of the floor's.
	most float64
}

var shapes = []shape{
	{"2 kB", 2 << 10, false, 1.3},
	{"32 kB", 32 << 10, false, 1.3},
	{"400 kB", 400_000, false, 1.9},
	{"2 kB, streamed", 2 << 10, true, 1.3},
}

// contender is a gateway under measurement.
type contender struct {
	*gateway.Running
	version   string
	idle, end process.Usage
	// cost holds CPU per request in microseconds, by shape and round.
	cost [][]float64
	// latency holds the p99 of each shape's last round.
	latency []time.Duration
	failed  int64
	err     error
}

type cpuRun struct {
	*settings
	rounds     int
	slice      time.Duration
	chunkDelay time.Duration
	strict     bool
}

// runCPU measures the CPU time of a request: the gateways take turns, so that
// what the neighbours do to the machine does the same to all of them.
func runCPU(ctx context.Context, args []string) (err error) {
	c := &cpuRun{settings: newSettings("cpu", "all")}
	c.flags.IntVar(&c.rounds, "rounds", 3, "rounds, of which the median is taken")
	c.flags.DurationVar(&c.slice, "slice", 4*time.Second, "time of one gateway with one kind of request in one round")
	c.flags.DurationVar(&c.chunkDelay, "chunk-delay", 0, "time between two chunks of a stream; 0 sends them back to back")
	c.flags.BoolVar(&c.strict, "strict", false, "fail where kvca takes more than is promised")
	sizes := c.flags.String("nodes", "", "instead of gateways, a cluster of so many nodes beside one node")
	rate := c.flags.Float64("rate", 1000, "requests a second that either gets")
	if err := c.parse(args); err != nil {
		return err
	}
	if *sizes != "" {
		ns, err := counts(*sizes)
		if err != nil {
			return err
		}
		return runClusterCPU(ctx, c, ns, *rate)
	}
	names, err := gateway.Choose(c.gateways)
	if err != nil {
		return err
	}
	cfg := fake.DefaultConfig()
	cfg.ChunkDelay = c.chunkDelay
	r, err := newRig(ctx, c.settings, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	list, err := c.startAll(ctx, r, names)
	defer closeAll(list)
	if err != nil {
		return err
	}
	if err := c.measure(ctx, list); err != nil {
		return err
	}
	return c.print(r, list)
}

// startAll starts those that are installed and says which are not.
func (c *cpuRun) startAll(ctx context.Context, r *rig, names []string) ([]*contender, error) {
	var list []*contender
	for _, name := range names {
		g, err := r.start(ctx, name)
		if ctx.Err() != nil {
			return list, ctx.Err()
		}
		if err != nil {
			r.Printf("* left out: %s\n", ends(err))
			continue
		}
		usage, err := process.UsageOf(g.PID)
		list = append(list, &contender{
			Running: g, version: gateway.Version(ctx, name, &r.env), idle: usage,
			cost: make([][]float64, len(shapes)), latency: make([]time.Duration, len(shapes)),
		})
		if err != nil {
			return list, err
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no gateway could be started")
	}
	return list, nil
}

func closeAll(list []*contender) {
	for _, g := range list {
		g.Close()
	}
}

func (c *cpuRun) measure(ctx context.Context, list []*contender) error {
	for round := range c.rounds {
		for i, s := range shapes {
			requests := load.Same(load.Chat(model, s.bytes, s.stream, c.seed))
			for turn := range list {
				g := list[(turn+round)%len(list)] // nobody is always first
				if err := c.visit(ctx, g, i, requests); err != nil {
					return err
				}
			}
		}
	}
	for _, g := range list {
		usage, err := process.UsageOf(g.PID)
		if err != nil {
			return fmt.Errorf("read usage of %s: %w", g.Name, err)
		}
		g.end = usage
	}
	return nil
}

// visit loads one gateway for one slice, after a tenth of it to warm up.
func (c *cpuRun) visit(ctx context.Context, g *contender, i int, requests load.Requests) error {
	loop := load.Closed{Addr: g.Addr, Connections: connections, Requests: requests, Duration: c.slice / 10, Timeout: requestTime}
	loop.Run(ctx)
	before, err := process.UsageOf(g.PID)
	if err != nil {
		return fmt.Errorf("read usage of %s: %w", g.Name, err)
	}
	loop.Duration = c.slice
	res := loop.Run(ctx)
	after, err := process.UsageOf(g.PID)
	if err != nil {
		return fmt.Errorf("read usage of %s: %w", g.Name, err)
	}
	g.failed += res.Failed
	if g.err == nil {
		g.err = res.Err
	}
	if res.OK > 0 {
		g.cost[i] = append(g.cost[i], float64((after.CPU-before.CPU).Microseconds())/float64(res.OK))
		g.latency[i] = res.Latency.Quantile(0.99)
	}
	return ctx.Err()
}

func (c *cpuRun) print(r *rig, list []*contender) error {
	r.Printf("\nCPU microseconds of a request, medians of %d rounds of %v, %d connections, 4 backends; in parentheses times the floor (plain)\n\n",
		c.rounds, c.slice, connections)
	floor := floorOf(list)
	t := &report.Table{Header: []string{"gateway"}}
	for _, s := range shapes {
		t.Header = append(t.Header, s.name)
	}
	t.Header = append(t.Header, "p99 2 kB, ms", "start, s", "RSS idle, MB", "RSS after, MB", "failed")
	for _, g := range list {
		row := []any{g.Name + " " + g.version}
		for i := range shapes {
			row = append(row, cell(median(g.cost[i]), floor[i]))
		}
		row = append(row, fmt.Sprintf("%.1f", g.latency[0].Seconds()*1e3), fmt.Sprintf("%.2f", g.Started.Seconds()),
			megabytes(g.idle.RSS), megabytes(g.end.RSS), g.failed)
		t.Add(row...)
	}
	r.Printf("%s\n", t)
	for _, g := range list {
		if g.err != nil {
			r.Printf("* %s, first failure: %.300v\n", g.Name, g.err)
		}
	}
	return c.judge(r, list, floor)
}

// judge compares kvca with the floor.
func (c *cpuRun) judge(r *rig, list []*contender, floor []float64) error {
	i := slices.IndexFunc(list, func(g *contender) bool { return g.Name == "kvca" })
	if i < 0 || floor[0] == 0 {
		return nil
	}
	var err error
	for n, s := range shapes {
		ratio := median(list[i].cost[n]) / floor[n]
		err = errors.Join(err, r.judge(ratio > 0 && ratio <= s.most, "%s takes %.2f times the floor, promised at most %.1f", s.name, ratio, s.most))
	}
	if !c.strict {
		return nil
	}
	return err
}

// floorOf is the bare proxy's cost per shape, 0 where it was not measured.
func floorOf(list []*contender) []float64 {
	floor := make([]float64, len(shapes))
	for _, g := range list {
		if g.Name == "plain" {
			for i := range shapes {
				floor[i] = median(g.cost[i])
			}
		}
	}
	return floor
}

func cell(cost, floor float64) string {
	switch {
	case cost == 0:
		return "none served"
	case floor == 0:
		return fmt.Sprintf("%.0f", cost)
	}
	return fmt.Sprintf("%.0f (%.2f)", cost, cost/floor)
}

// median is the middle value, the mean of both where there are two; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
