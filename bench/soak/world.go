package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"kvca/bench/drills"
	"kvca/bench/fake"
	"kvca/bench/nodes"
	"kvca/bench/process"
)

// HealTime is how soon after a fault nothing of it may be left.
const HealTime = 30 * time.Second

// World is a cluster and what can be done to it.
type World struct {
	Cluster *nodes.Cluster
	Engines []*drills.Engine
	// Net cuts the network between nodes; nil where that can't be done.
	Net drills.Net
	// Log is the pipe that the first node writes its access log to.
	Log *Pipe
	// Starved is the node that may have few descriptors, as many as Descriptors.
	Starved     *nodes.Node
	Descriptors int
	// Configure writes the configuration file of all nodes, another one for each n.
	Configure func(n int) error
	// Noise is a command that sends garbage to the addresses behind it.
	Noise []string
	// Dir takes logs.
	Dir     string
	History History
	// Told is called with each fault that is over.
	Told func(Event)

	configured int
	noises     int
	// life is how long what is started again lives, longer than the fault.
	life context.Context
	// pids are the nodes' processes, for whom Watch looks at.
	pids []atomic.Int64
}

// note remembers the processes, which are others after a restart.
func (w *World) note() {
	for i, n := range w.Cluster.Nodes {
		w.pids[i].Store(int64(n.PID))
	}
}

// Watch returns the most resident memory that a process of each node had until ctx
// ended. It may run beside Run.
func (w *World) Watch(ctx context.Context) []int64 {
	peak := make([]int64, len(w.pids))
	for sleep(ctx, 500*time.Millisecond) == nil {
		for i := range peak {
			if use, err := process.UsageOf(int(w.pids[i].Load())); err == nil { // else it is between two lives
				peak[i] = max(peak[i], use.RSS)
			}
		}
	}
	return peak
}

// Begin is called once before anything else, when the cluster runs. What is started
// again ends with ctx.
func (w *World) Begin(ctx context.Context) {
	w.life = ctx
	w.pids = make([]atomic.Int64, len(w.Cluster.Nodes))
	w.note()
}

// Run does faults one after the other until ctx ends, with pauses between them. All
// faults come once before one comes again. The error is that of a fault that could not
// be done or of which something was left.
func (w *World) Run(ctx context.Context, seed uint64, pause time.Duration, faults []Fault) error {
	r := rand.New(rand.NewPCG(seed, 99))
	for {
		for _, i := range r.Perm(len(faults)) {
			if err := sleep(ctx, pause/2+upTo(r, pause)); err != nil {
				return nil // the time is over
			}
			if err := w.do(faults[i], r); err != nil {
				return err
			}
		}
	}
}

// do does one fault to its end, also where the time is over meanwhile.
func (w *World) do(f Fault, r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(w.life, 2*time.Minute)
	defer cancel()
	e := &Event{Fault: f.Name, Began: time.Now()}
	err := f.Do(ctx, w, r, e)
	w.note()
	if e.Ended.IsZero() {
		e.Ended = time.Now()
	}
	if err == nil {
		_, err = nodes.Await(ctx, HealTime, w.healed)
	}
	e.Healed = time.Now()
	w.History.event(e)
	if w.Told != nil {
		w.Told(*e)
	}
	if err != nil {
		return fmt.Errorf("%s (%s %s): %w", e.Fault, e.Target, e.Detail, err)
	}
	return nil
}

// healed finds fault where something of a fault is left.
func (w *World) healed(ctx context.Context) error {
	if err := errors.Join(nodes.Whole(ctx, w.Cluster.Nodes), nodes.Owned(ctx, w.Cluster.Nodes)); err != nil {
		return err
	}
	all, err := nodes.Statuses(ctx, w.Cluster.Nodes)
	if err != nil {
		return err
	}
	var faults []error
	for _, s := range all {
		for _, b := range s.Backends {
			if b.Health != "healthy" {
				faults = append(faults, fmt.Errorf("%s finds %s %s", s.Node, b.ID, b.Health))
			}
		}
	}
	return errors.Join(faults...)
}

// Rest waits until there is no load anywhere. The clients have ended.
func (w *World) Rest(ctx context.Context) error {
	for _, goal := range []struct {
		what string
		is   func(context.Context) error
	}{
		{"the cluster is whole", w.healed},
		{"no node knows of any load", func(ctx context.Context) error { return nodes.AtRest(ctx, w.Cluster.Nodes) }},
		{"no backend has a request", w.idle},
	} {
		if _, err := nodes.Await(ctx, HealTime, goal.is); err != nil {
			return fmt.Errorf("wait until %s: %w", goal.what, err)
		}
	}
	return nil
}

// Same waits until all maps are the same, which they can be only while no location
// expires: a comparison leaves out what is about to.
func (w *World) Same(ctx context.Context) error {
	_, err := nodes.Await(ctx, HealTime, func(ctx context.Context) error { return nodes.SameMaps(ctx, w.Cluster.Nodes) })
	return err
}

// Agree waits until all nodes believe the same of each of the prompts, and that most of
// them are held by a backend. It returns how many are.
func (w *World) Agree(ctx context.Context, bodies [][]byte) (held int, err error) {
	if len(bodies) == 0 {
		return 0, errors.New("no prompt was answered of late")
	}
	_, err = nodes.Await(ctx, HealTime, func(ctx context.Context) error {
		held = 0
		for i, body := range bodies {
			is, err := w.agree(ctx, body)
			if err != nil {
				return fmt.Errorf("prompt %d of %d: %w", i+1, len(bodies), err)
			}
			if is {
				held++
			}
		}
		return nil
	})
	if err == nil && held <= len(bodies)/2 {
		err = errors.New("most are held by no backend")
	}
	return held, err
}

// agree finds fault where two nodes believe different things of who holds how much of a
// prompt; is tells whether anybody does. Where they would send it is not compared: the
// policy two-phase asks only for the load when a conversation begins, and all are idle.
func (w *World) agree(ctx context.Context, body []byte) (is bool, err error) {
	var first string
	for i, n := range w.Cluster.Nodes {
		d, err := n.Explain(ctx, body)
		if err != nil {
			return false, err
		}
		held := fmt.Sprintf("of %d blocks", d.ChainBlocks)
		for _, c := range d.Candidates {
			is = is || c.MatchedBlocks > 0
			if c.MatchedBlocks > 0 || !c.Eligible {
				held += fmt.Sprintf(", %d at %s (eligible: %t)", c.MatchedBlocks, c.Backend, c.Eligible)
			}
		}
		if i == 0 {
			first = held
		}
		if held != first {
			return false, fmt.Errorf("%s believes %s, but %s %s", w.Cluster.Nodes[0].Place.Name, first, n.Place.Name, held)
		}
	}
	return is, nil
}

func (w *World) idle(ctx context.Context) error {
	var faults []error
	for _, e := range w.Engines {
		s, err := fake.Fetch(ctx, e.URL)
		if err != nil {
			return err
		}
		if n := s.Backends[0].Active; n != 0 {
			faults = append(faults, fmt.Errorf("%s serves %d requests", e.ID, n))
		}
	}
	return errors.Join(faults...)
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func upTo(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(max(d, 1))))
}

// between draws a time.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + upTo(r, most-least)
}
