package drills

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvca/bench/fake"
	"kvca/bench/load"
	"kvca/bench/nodes"
)

const (
	// loops is how many connections ask each node for short requests.
	loops = 4
	// holders is how many streams are held at each node.
	holders = 16
	// requestTime bounds one request.
	requestTime = 30 * time.Second
	promptBytes = 2 << 10
)

// Fakes is how the backends of a drill behave: eight, so that each of three nodes
// owns some; streams begin at once and last for minutes.
func Fakes() fake.Config {
	cfg := fake.DefaultConfig()
	cfg.Backends, cfg.Delay, cfg.ChunkDelay = 8, 20*time.Millisecond, 15*time.Second
	return cfg
}

// Rig is what a drill is done with.
type Rig struct {
	Cluster *nodes.Cluster
	// Fleet tells what the backends serve.
	Fleet func(ctx context.Context) (fake.Stats, error)
	// Model is the one of the backends.
	Model string
	// Rate is how many short requests a second each node gets.
	Rate float64
	// Limit bounds each wait.
	Limit time.Duration
	// Seed is moved on by every load, so that no prompt comes twice.
	Seed uint64
}

// New makes a rig with a moderate load.
func New(c *nodes.Cluster, fleet func(context.Context) (fake.Stats, error), model string) *Rig {
	return &Rig{Cluster: c, Fleet: fleet, Model: model, Rate: 40, Limit: 30 * time.Second, Seed: 1 << 32}
}

// begin starts short requests at each node of the list, of which none is new to
// the cluster twice.
func (r *Rig) begin(ctx context.Context, list []*nodes.Node) *traffic {
	ctx, cancel := context.WithCancel(ctx)
	t := &traffic{stop: cancel, results: make(chan *load.Result, len(list))}
	for _, n := range list {
		r.Seed++
		loop := load.Closed{
			Addr: n.Client, Connections: loops, Rate: r.Rate, Duration: time.Hour, Timeout: requestTime,
			Requests: load.Distinct(r.Model, promptBytes, 1<<40, r.Seed),
		}
		t.running++
		go func() { t.results <- loop.Run(ctx) }()
	}
	return t
}

// traffic is short requests that go on until end.
type traffic struct {
	stop    context.CancelFunc
	running int
	results chan *load.Result
}

// end lets the requests that are under way end and adds up what was seen.
func (t *traffic) end() Seen {
	t.stop()
	var s Seen
	for range t.running {
		s.add(<-t.results)
	}
	return s
}

// Seen is what clients saw of short requests.
type Seen struct {
	Requests, Failed int64
	// Err is the first failure.
	Err error
	// Median and Slowest are of the time that a request took; Slowest is of all.
	Median, Slowest time.Duration
}

func (s *Seen) add(r *load.Result) {
	s.Requests += r.OK + r.Failed
	s.Failed += r.Failed
	if s.Err == nil {
		s.Err = r.Err
	}
	s.Median = max(s.Median, r.Latency.Quantile(0.5))
	s.Slowest = max(s.Slowest, r.Latency.Max())
}

// hold begins streams at each node of the list and waits until all nodes agree
// on the load, which stands still then.
func (r *Rig) hold(ctx context.Context, list []*nodes.Node) (held, error) {
	h, err := r.holdUnseen(ctx, list)
	if err != nil {
		return nil, err
	}
	if _, err := r.await(ctx, "every node knows the load of all", r.exact(r.Cluster.Others(nil))); err != nil {
		h.leave()
		return nil, err
	}
	return h, nil
}

func (r *Rig) holdUnseen(ctx context.Context, list []*nodes.Node) (held, error) {
	var h held
	for _, n := range list {
		bodies := make([][]byte, holders)
		for i := range bodies {
			r.Seed++
			bodies[i] = load.Chat(r.Model, promptBytes, true, r.Seed)
		}
		one, err := load.Hold(ctx, n.Client, bodies, requestTime)
		if err != nil {
			h.leave()
			return nil, err
		}
		h = append(h, one)
	}
	return h, nil
}

type held []*load.Held

func (h held) leave() {
	for _, one := range h {
		one.Close()
	}
}

type check = func(ctx context.Context) error

func (r *Rig) await(ctx context.Context, what string, c check) (time.Duration, error) {
	took, err := nodes.Await(ctx, r.Limit, c)
	if err != nil {
		return took, fmt.Errorf("wait until %s: %w", what, err)
	}
	return took, nil
}

func (r *Rig) exact(list []*nodes.Node) check {
	return func(ctx context.Context) error { return nodes.Exact(ctx, list, r.Fleet) }
}

func (r *Rig) whole(list []*nodes.Node) check {
	return func(ctx context.Context) error { return errors.Join(nodes.Whole(ctx, list), nodes.Owned(ctx, list)) }
}

// together waits until all nodes see each other and each knows the load of all.
func (r *Rig) together(ctx context.Context) error {
	all := r.Cluster.Others(nil)
	if _, err := r.await(ctx, "the cluster is whole", r.whole(all)); err != nil {
		return err
	}
	_, err := r.await(ctx, "every load is exact", r.exact(all))
	return err
}

// rest lets held streams end and waits until no node knows of any load and all
// maps are the same.
func (r *Rig) rest(ctx context.Context, h held) error {
	h.leave()
	all := r.Cluster.Others(nil)
	if _, err := r.await(ctx, "no load is left", func(ctx context.Context) error { return nodes.AtRest(ctx, all) }); err != nil {
		return err
	}
	_, err := r.await(ctx, "all maps are the same", r.same(all))
	return err
}

func (r *Rig) same(list []*nodes.Node) check {
	return func(ctx context.Context) error { return nodes.SameMaps(ctx, list) }
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
