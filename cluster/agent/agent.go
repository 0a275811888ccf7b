package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/ring"
)

// The versions of the protocol between agents and nodes that this agent speaks.
const (
	minProtocol = 1
	maxProtocol = 1
)

// Agent streams its Mirrors to a node.
type Agent struct {
	cfg     Config
	log     *slog.Logger
	mirrors []*Mirror
	byID    map[wire.SourceID]*Mirror
	stir    chan struct{}
	epochs  atomic.Uint64
	node    atomic.Pointer[string]
	problem atomic.Pointer[string]
}

// New makes an agent; its Mirrors can be fed from then on, Run streams them.
func New(cfg Config) (*Agent, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, log: cfg.Logger, byID: make(map[wire.SourceID]*Mirror), stir: make(chan struct{}, 1)}
	memory := &memory{most: cfg.MaxBytes}
	for _, b := range cfg.Backends {
		for rank := range b.Ranks {
			id := wire.SourceID{Key: ring.Key(b.ID), Rank: rank}
			if other := a.byID[id]; other != nil {
				return nil, fmt.Errorf("agent: backends %q and %q have the same key: rename one", other.backend, b.ID)
			}
			m := newMirror(b.ID, id, memory, a.wake)
			a.mirrors, a.byID[id] = append(a.mirrors, m), m
		}
	}
	return a, nil
}

// Sink is where the feed of a backend's rank tells what the engine holds.
func (a *Agent) Sink(backend string, rank int) (*Mirror, error) {
	m := a.byID[wire.SourceID{Key: ring.Key(backend), Rank: rank}]
	if m == nil {
		return nil, fmt.Errorf("agent: backend %q rank %d: not among the agent's backends", backend, rank)
	}
	return m, nil
}

func (a *Agent) wake() {
	select {
	case a.stir <- struct{}{}:
	default:
	}
}

// Pauses between two links.
const (
	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
	// refusedPause is for who was refused: someone must change a file.
	refusedPause = 3 * time.Second
	// steady is how long a link must have been up to begin with short pauses again.
	steady = 5 * time.Second
)

// Run streams until ctx ends, and returns when nothing of it is left.
func (a *Agent) Run(ctx context.Context) error {
	pause := minPause
	for i := rand.IntN(len(a.cfg.Nodes)); ; i++ {
		began := time.Now()
		err := a.call(ctx, a.cfg.Nodes[i%len(a.cfg.Nodes)])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) >= steady {
			pause = minPause
		}
		a.failed(err)
		wait := pause/2 + rand.N(pause/2)
		if pause = min(2*pause, maxPause); link.Refused(err) {
			wait = refusedPause/2 + rand.N(refusedPause/2)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// call keeps one link with a node until it ends.
func (a *Agent) call(ctx context.Context, addr string) error {
	s := &stream{a: a, addr: addr}
	return link.Call(ctx, link.CallConfig{
		Addr: addr, Name: a.cfg.Name, Token: a.cfg.Token, MinProtocol: minProtocol, MaxProtocol: maxProtocol,
		Dial: a.cfg.Dial, TLS: a.cfg.TLS, Receiver: s, Logger: a.log,
	})
}

// failed logs why there is no link, once for each reason.
func (a *Agent) failed(err error) {
	if err == nil {
		err = errors.New("the link ended")
	}
	a.node.Store(nil)
	text := err.Error()
	if was := a.problem.Swap(&text); was == nil || *was != text {
		a.log.Warn("agent streams to no node", "error", err)
	}
}

func (a *Agent) linked(node, addr string) {
	a.node.Store(&node)
	a.problem.Store(nil)
	a.log.Info("agent streams", "node", node, "address", addr)
}

// Status is an agent's state for people.
type Status struct {
	// Node is whom it streams to, empty while there is no link; Problem says why.
	Node, Problem string
	Bytes         int64 // of all blocks
	Mirrors       []MirrorStatus
}

// MirrorStatus is the state of one Mirror.
type MirrorStatus struct {
	Backend string
	Rank    int
	// Live is what its feed says, Told whether the node wants it.
	Live, Told bool
	Problem    string
	MirrorStats
}

// Status describes the agent as it is now.
func (a *Agent) Status() Status {
	s := Status{}
	if node := a.node.Load(); node != nil {
		s.Node = *node
	}
	if problem := a.problem.Load(); problem != nil {
		s.Problem = *problem
	}
	for _, m := range a.mirrors {
		m.mu.Lock()
		s.Mirrors = append(s.Mirrors, MirrorStatus{
			Backend: m.backend, Rank: m.id.Rank, Live: m.live, Told: m.streaming, Problem: m.problem, MirrorStats: m.stats,
		})
		s.Bytes = m.memory.used.Load()
		m.mu.Unlock()
	}
	return s
}
