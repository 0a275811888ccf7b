package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kvca/bench/trace"
)

// Run plays a trace in virtual time. It returns early only where ctx ends.
func Run(ctx context.Context, cfg Config, t *trace.Trace) (*Result, error) {
	began := time.Now()
	s, err := newSimulation(cfg, t)
	if err != nil {
		return nil, err
	}
	if err := s.play(ctx); err != nil {
		return nil, err
	}
	r := s.result()
	r.WallS = time.Since(began).Seconds()
	return r, nil
}

// simulation is one run. Everything in it belongs to the goroutine of the loop.
type simulation struct {
	cfg     Config
	loop    loop
	engines *engines
	events  *events // nil where the engines publish none
	clients *clients
	gate    gateway
	figures figures
	// starting are nodes that were started and are not ready.
	starting []bool
}

func newSimulation(cfg Config, t *trace.Trace) (*simulation, error) {
	if err := errors.Join(cfg.Validate(), checkTrace(t)); err != nil {
		return nil, fmt.Errorf("configure simulation: %w", err)
	}
	s := &simulation{cfg: cfg.withDefaults()}
	s.starting = make([]bool, s.cfg.Nodes)
	s.figures.sim = s
	s.engines = newEngines(s)
	if s.cfg.Precise {
		s.events = newEvents(s)
	}
	s.clients = newClients(s, t)
	var err error
	if s.gate, err = s.newGateway(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *simulation) newGateway() (gateway, error) {
	switch {
	case !s.cfg.isProduct():
		return newRivals(s)
	case s.cfg.Nodes > 1:
		return newMany(s)
	default:
		return newProduct(s)
	}
}

// play lets time pass until every request is over.
func (s *simulation) play(ctx context.Context) error {
	defer s.gate.close()
	return s.playOpen(ctx)
}

// playOpen leaves the gateway as it is then.
func (s *simulation) playOpen(ctx context.Context) error {
	s.loop.every(sampleInterval, s.figures.sample)
	s.disturb()
	s.clients.begin()
	if err := s.loop.run(ctx, func() bool { return s.clients.left == 0 }); err != nil {
		return fmt.Errorf("simulate %s: %w at %v of virtual time, %d requests left", s.cfg.Policy, err, s.loop.now, s.clients.left)
	}
	return nil
}

// What chance decides has a source of its own each, so that one more throw of
// the dice in one place changes nothing in another.
const (
	chanceClients = iota
	chanceRivals
	chanceNetwork
	chanceNodes // and those after it, one a node
)

func (s *simulation) chance(concern int) *rand.Rand {
	return rand.New(rand.NewPCG(s.cfg.Seed, uint64(concern)))
}
