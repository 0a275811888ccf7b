package rival

import (
	"math/rand/v2"
	"testing"
	"time"
)

// engine is a test's engine, with the figures that it is given.
type engine struct {
	waiting int
	usage   float64
	held    map[uint64]bool
}

func (e *engine) Running() int     { return 0 }
func (e *engine) Queued() int      { return e.waiting }
func (e *engine) KVUsage() float64 { return e.usage }

func (e *engine) Cached(names []uint64) int {
	for i, name := range names {
		if !e.held[name] {
			return i
		}
	}
	return len(names)
}

const unit = 128

type rig struct {
	*Fleet
	t       *testing.T
	engines []*engine
	now     time.Duration
}

// newRig makes a fleet of n engines; change alters its configuration.
func newRig(t *testing.T, name string, n int, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t}
	cfg := Config{UnitTokens: unit, Rand: rand.New(rand.NewPCG(1, 2)).Uint64}
	for range n {
		e := &engine{held: make(map[uint64]bool)}
		r.engines = append(r.engines, e)
		cfg.Engines = append(cfg.Engines, e)
	}
	for _, f := range change {
		f(&cfg)
	}
	fleet, err := New(name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Fleet = fleet
	return r
}

func gateways(n int, s Sharing, delay time.Duration) func(*Config) {
	return func(c *Config) { c.Gateways, c.Sharing, c.Delay = n, s, delay }
}

// prompt is a request of whole units, whose names begin with a family's.
func prompt(family uint64, units int) *Request {
	return fork(family, family, units, units)
}

// fork is a request that shares some units with its family's and goes on by itself.
func fork(family, own uint64, shared, units int) *Request {
	r := &Request{ID: own, Session: own, PromptTokens: units * unit}
	for i := range units {
		if i < shared {
			r.Names = append(r.Names, mix(family<<20+uint64(i)))
		} else {
			r.Names = append(r.Names, mix(own<<20+1<<19+uint64(i)))
		}
	}
	return r
}

func (r *rig) route(q *Request) *Ticket { return r.Route(0, q, r.now) }

// load gives a backend so many requests of prompts that nobody else has.
func (r *rig) load(backend, requests int) {
	for range requests {
		r.books.book(0, backend, load{requests: 1, prompt: unit, prefill: unit, blocks: 1}, r.now)
	}
}

// counts routes the same request many times without a trace and says where it went.
func (r *rig) counts(q *Request, times int) []int {
	n := make([]int, len(r.engines))
	for range times {
		r.ask(&r.gateways[0], 0, q, r.now)
		n[r.rule.choose(&r.question)]++
	}
	return n
}

// only fails unless the request always goes to one backend.
func (r *rig) only(q *Request, backend int) {
	r.t.Helper()
	if n := r.counts(q, 20); n[backend] != 20 {
		r.t.Errorf("went to %v, want all to %d", n, backend)
	}
}

// among fails unless the request goes to all of these backends, and to no other.
func (r *rig) among(q *Request, backends ...int) {
	r.t.Helper()
	want := make([]bool, len(r.engines))
	for _, b := range backends {
		want[b] = true
	}
	for b, n := range r.counts(q, 200) {
		if n > 0 != want[b] {
			r.t.Errorf("backend %d got %d of 200, want some: %v", b, n, want[b])
		}
	}
}

// teach makes a backend believed to hold a prompt, in the first gateway.
func (r *rig) teach(q *Request, backend int) {
	b := r.gateways[0].belief
	b.look(q.Names)
	b.learn(q.Names, backend, r.now)
}
