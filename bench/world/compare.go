package world

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"kvca/bench/engine"
	"kvca/bench/nodes"
	"kvca/bench/sim"
	"kvca/bench/trace"
	"kvca/router"
)

// Config is a workload and what it is played on.
type Config struct {
	// Kvca is the path of the program, which should be of the same state of the source as this one; Flags are added to its command
	// line. Dir takes logs.
	Kvca, Dir string
	Flags     []string
	// Speedup is how many seconds of the engines and of people pass in one of the clock. The more, the shorter the run, and the more
	// of what is measured is the machine.
	Speedup float64
	// Engines are so many, each of Profile, in blocks of a trace's unit. Their caches should be too small for the workload: what
	// always fits is hit by any policy, and agreement says nothing.
	Engines int
	Profile engine.Profile
	// Workload is of so many requests that chance leaves the hit rate alone.
	Workload trace.TenantOptions
	// Seeds is how many simulations are averaged.
	Seeds int
}

// Default is a workload of some 2000 requests in 400 s, of which four engines can keep a half.
func Default(seed uint64) Config {
	p := engine.Profile70B
	p.KVTokens = 20_000
	return Config{
		Speedup: 8, Engines: 4, Profile: p, Seeds: 10, Workload: trace.TenantOptions{
			Name: "world", Seed: seed, Tenants: 24, SystemTokens: 1000, Rate: 3, Duration: 4 * time.Minute, Turns: 3,
			Think: 10 * time.Second, QuestionTokens: 200, AnswerTokens: 40,
		},
	}
}

// Case is one way to route it.
type Case struct {
	Policy string
	Nodes  int
}

// Outcome is what came of it on both sides.
type Outcome struct {
	Case
	Requests        int
	Real, Simulated Side
	// Spread is the standard deviation of the simulated hit rate from seed to seed.
	Spread float64
	// BytesPerToken is how many bytes of CBR a token had; the simulator takes trace.BytesPerToken.
	BytesPerToken float64
	// Late is the ninth decile of how late turns were sent.
	Late time.Duration
}

// Side is one of both. Times are the engines'.
type Side struct {
	HitRate    float64
	TTFT, Took time.Duration
}

// Difference is between the hit rates.
func (o *Outcome) Difference() float64 { return o.Real.HitRate - o.Simulated.HitRate }

// TooSlow tells that the machine could not keep up with the speed-up.
func (o *Outcome) TooSlow() bool { return o.Late > maxLate }

// maxLate is how late turns may be, in time of the engines: about what they take until a first token. Beyond that, queues are the
// machine's. On two cores of its own turns are 9 ms late. Beside six busy loops it was 60 ms, and times to the first token doubled
// while hit rates stayed; at 130 ms those times were sixfold.
const maxLate = 100 * time.Millisecond

// Run plays the workload on both sides.
func (c Config) Run(ctx context.Context, what Case) (*Outcome, error) {
	c.Profile.BlockTokens = trace.UnitTokens
	rec, err := c.world(ctx, what)
	if err != nil {
		return nil, fmt.Errorf("%s on %d nodes: %w", what.Policy, what.Nodes, err)
	}
	prompt, cached := rec.tokens()
	late := rec.late()
	if len(late) == 0 {
		return nil, errors.New("the workload has no requests")
	}
	o := &Outcome{Case: what, Late: late[len(late)*9/10], Real: Side{HitRate: float64(cached) / float64(prompt), TTFT: rec.ttft(), Took: rec.took}}
	if o.BytesPerToken, err = rec.bytesPerToken(); err != nil {
		return nil, err
	}
	t, err := rec.trace()
	if err != nil {
		return nil, fmt.Errorf("make the trace: %w", err)
	}
	o.Requests = t.Requests()
	return o, c.simulate(ctx, t, late, o)
}

// world plays the workload in real time.
func (c Config) world(ctx context.Context, what Case) (*recording, error) {
	e, err := startEngines(ctx, c.Engines, engine.ServerConfig{Model: model, Profile: c.Profile, Speedup: c.Speedup})
	if err != nil {
		return nil, err
	}
	defer e.close()
	places, err := nodes.Local(what.Nodes)
	if err != nil {
		return nil, err
	}
	cluster, err := nodes.Start(ctx, nodes.Config{
		Kvca: c.Kvca, Dir: c.Dir, Places: places, Backends: e.urls, Flags: append([]string{"--policy", what.Policy}, c.Flags...),
	})
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	rec, err := play(ctx, conversations(c.Workload, c.Profile.KVTokens/2), nodes.Addrs(cluster.Nodes), c.Speedup)
	if err != nil {
		return nil, err
	}
	return rec, e.agree(rec)
}

// simulate fills in the other side.
func (c Config) simulate(ctx context.Context, t *trace.Trace, late []time.Duration, o *Outcome) error {
	var sum, squares, ttft, took float64
	n := float64(max(c.Seeds, 1))
	for i := range int(n) {
		seed := uint64(i) + 1
		r, err := sim.Run(ctx, c.simulation(o.Case, seed), restless(t, late, seed))
		if err != nil {
			return err
		}
		if r.Failed > 0 {
			return fmt.Errorf("simulate %s on %d nodes: %d requests failed, in the world none", o.Policy, o.Nodes, r.Failed)
		}
		sum, squares, ttft, took = sum+r.HitRate, squares+r.HitRate*r.HitRate, ttft+r.TTFT.Mean, took+r.VirtualS
	}
	mean := sum / n
	o.Simulated = Side{mean, seconds(ttft / n), seconds(took / n)}
	o.Spread = math.Sqrt(max(squares/n-mean*mean, 0))
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// loopback is how long a frame takes from one process to another of the same machine.
const loopback = 100 * time.Microsecond

// defaultTTL is what kvca takes.
const defaultTTL = 10 * time.Minute

// simulation stretches what a gateway measures by the clock.
func (c Config) simulation(what Case, seed uint64) sim.Config {
	stretch := func(d time.Duration) time.Duration { return time.Duration(float64(d) * c.Speedup) }
	cfg := sim.Config{
		Policy: what.Policy, Nodes: what.Nodes, Backends: c.Engines, Profile: c.Profile, Seed: seed, Router: router.DefaultConfig(),
		Delay: stretch(loopback), TTL: stretch(defaultTTL),
	}
	cfg.Router.Cost.Pressure = stretch(cfg.Router.Cost.Pressure)
	return cfg
}
