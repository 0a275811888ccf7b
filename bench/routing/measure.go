package routing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"kvca/router"
)

// maxRounds is how often each kind may be measured before the map might evict.
const maxRounds = 5

// Latency is the distribution of one measurement.
type Latency struct{ P50, P99, Max time.Duration }

// Timing is what was measured of one kind of request.
type Timing struct {
	// Route is the decision alone, by the wall clock, and CPU is its CPU time: on
	// a shared machine a wall clock's p99 may be the scheduler's.
	Route, CPU Latency
	// Rest is learning and closing together.
	Rest Latency
}

// Measure times cfg.Decisions decisions. As many requests as there are backends
// are open at any time, so that loads are not all zero.
func (f *Fleet) Measure(ctx context.Context, s Shape, round uint64) (Timing, error) {
	each := (f.cfg.Decisions + f.cfg.Goroutines - 1) / f.cfg.Goroutines
	runs := make([]run, f.cfg.Goroutines)
	var running sync.WaitGroup
	for i := range runs {
		runs[i] = run{
			fleet: f, shape: s, rand: rand.New(rand.NewPCG(f.cfg.Seed+round*1000+uint64(i)+1, uint64(s))),
			open: make([]*router.Ticket, max(len(f.members)/f.cfg.Goroutines, 1)),
		}
		running.Go(func() { runs[i].decide(ctx, each) })
	}
	running.Wait()
	var route, cpu, rest []time.Duration
	for i := range runs {
		if runs[i].err != nil {
			return Timing{}, fmt.Errorf("route: %w", runs[i].err)
		}
		route = append(route, runs[i].route...)
		cpu = append(cpu, runs[i].cpu...)
		rest = append(rest, runs[i].rest...)
	}
	return Timing{Route: latencyOf(route), CPU: latencyOf(cpu), Rest: latencyOf(rest)}, ctx.Err()
}

// run is one goroutine's decisions.
type run struct {
	fleet            *Fleet
	shape            Shape
	rand             *rand.Rand
	open             []*router.Ticket
	route, cpu, rest []time.Duration
	err              error
}

func (r *run) decide(ctx context.Context, n int) {
	runtime.LockOSThread() // its CPU time is read
	defer runtime.UnlockOSThread()
	defer func() {
		for _, t := range r.open {
			if t != nil {
				t.Close()
			}
		}
	}()
	for i := range n {
		req := r.fleet.request(r.shape, r.rand)
		cpu := threadCPU()
		began := time.Now()
		ticket, err := r.fleet.router.Route(ctx, req, r.fleet.members)
		routed := time.Now()
		r.cpu = append(r.cpu, threadCPU()-cpu)
		if err != nil {
			r.err = err
			return
		}
		learned := time.Now()
		ticket.Begin()
		place := i % len(r.open)
		if r.open[place] != nil {
			r.open[place].Close()
		}
		r.open[place] = ticket
		r.route = append(r.route, routed.Sub(began))
		r.rest = append(r.rest, time.Since(learned))
		if ctx.Err() != nil {
			return
		}
	}
}

func latencyOf(d []time.Duration) Latency {
	if len(d) == 0 {
		return Latency{}
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[int(q*float64(len(d)-1))] }
	return Latency{P50: at(0.5), P99: at(0.99), Max: at(1)}
}
