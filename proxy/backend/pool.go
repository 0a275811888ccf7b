package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"kvca/router"
)

// Slots is what the pool needs of the router: it tells it which backends there
// are and when one has lost its cache.
type Slots interface {
	// Add makes the facts of a new backend; it is Starting.
	Add(id string) (*router.Backend, error)
	// Remove forgets the backend; requests in flight end as they end.
	Remove(b *router.Backend)
	// Void starts a new generation: the engine has restarted, its cache is empty.
	Void(b *router.Backend)
	// SetCache says how many tokens the engine's cache holds and how many make a
	// block there; 0 is unknown.
	SetCache(b *router.Backend, tokens, blockTokens int)
	// Active is the number of requests that are reserved there now, by this node
	// and by its peers: what the engine runs beyond them bypasses the gateway.
	Active(b *router.Backend) int64
}

// What Add, Remove, Forget, Drain and Undrain fail with.
var (
	ErrUnknown = errors.New("no such backend")
	ErrExists  = errors.New("backend exists")
	ErrLearned = errors.New("backend was learned from a peer: remove it there")
	ErrClosed  = errors.New("pool is closed")
)

// Pool owns the backends and their watchers.
type Pool struct {
	config  PoolConfig
	slots   Slots
	log     *slog.Logger
	started time.Time
	view    atomic.Pointer[view]
	metrics *collector

	mu       sync.Mutex // guards what follows; taken before Backend.mu
	backends map[string]*Backend
	pending  int           // early backends whose first discovery goes on
	settled  chan struct{} // closed and replaced when pending falls to zero
	closed   bool
}

// NewPool makes a pool without backends.
func NewPool(c PoolConfig, slots Slots) (*Pool, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("backend pool: %w", err)
	}
	c = c.withDefaults()
	p := &Pool{
		config: c, slots: slots, log: c.Logger, started: time.Now(),
		backends: make(map[string]*Backend),
		settled:  make(chan struct{}),
	}
	p.view.Store(newView(nil))
	if err := p.register(); err != nil {
		return nil, fmt.Errorf("backend pool: %w", err)
	}
	return p, nil
}

// Close ends every watcher and waits for it. Requests in flight go on; their
// connections close behind them.
func (p *Pool) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	backends := p.sorted()
	p.mu.Unlock()
	for _, b := range backends {
		b.cancel()
	}
	for _, b := range backends {
		b.stop()
	}
	p.unregister()
}

// Add begins to watch a backend. It may be chosen once it has been found healthy.
func (p *Pool) Add(c Config) error {
	c, base, err := c.resolve()
	if err != nil {
		return fmt.Errorf("add backend: %w", err)
	}
	b, err := newBackend(c, base, p)
	if err != nil {
		return fmt.Errorf("add backend %s: %w", c.ID, err)
	}
	if err := p.admit(b); err != nil {
		return fmt.Errorf("add backend %s: %w", c.ID, err)
	}
	p.log.Info("backend added", "backend", c.ID, "url", c.URL, "learned", c.Learned)
	p.config.OnChange()
	return nil
}

func (p *Pool) admit(b *Backend) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.backends[b.config.ID] != nil:
		return ErrExists
	}
	facts, err := p.slots.Add(b.config.ID)
	if err != nil {
		return err
	}
	b.facts = facts
	facts.SetSpeed(b.config.Weight)
	facts.SetStanding(b.cond.standing())
	facts.SetRemote(p.remote(b.config.Zone))
	if b.config.CacheTokens > 0 {
		p.slots.SetCache(facts, b.config.CacheTokens, 0)
	}
	p.backends[b.config.ID] = b
	if b.early = time.Since(p.started) < p.config.DiscoveryTimeout; b.early {
		p.pending++
	}
	p.publish()
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go b.watch(ctx)
	return nil
}

// Remove forgets a backend that this node was given. Requests in flight go on.
// A learned one would be back at once, so it is refused with ErrLearned.
func (p *Pool) Remove(id string) error {
	return p.remove(id, func(b *Backend) error { return refuse(b.config.Learned, ErrLearned) })
}

// Forget removes a backend that was learned and that no peer names any more.
func (p *Pool) Forget(id string) error {
	return p.remove(id, func(b *Backend) error { return refuse(!b.config.Learned, ErrUnknown) })
}

// Drop forgets a backend, whoever named it. Whoever keeps naming a learned one
// brings it back, so all peers have to be told.
func (p *Pool) Drop(id string) error { return p.remove(id, func(*Backend) error { return nil }) }

func refuse(when bool, err error) error {
	if when {
		return err
	}
	return nil
}

func (p *Pool) remove(id string, may func(*Backend) error) error {
	b, err := p.take(id, may)
	if err != nil {
		return fmt.Errorf("remove backend %s: %w", id, err)
	}
	b.stop()
	p.slots.Remove(b.facts)
	p.log.Info("backend removed", "backend", id, "learned", b.config.Learned)
	p.config.OnChange()
	return nil
}

// take takes a backend out of the pool's lists, if it may.
func (p *Pool) take(id string, may func(*Backend) error) (*Backend, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.backends[id]
	if b == nil || p.closed {
		return nil, ErrUnknown
	}
	if err := may(b); err != nil {
		return nil, err
	}
	delete(p.backends, id)
	p.publish()
	return b, nil
}

// stop ends the watcher and waits for it.
func (b *Backend) stop() {
	b.cancel()
	<-b.done
	b.data.CloseIdleConnections()
	b.probes.CloseIdleConnections()
}

// Drain keeps new requests from a backend; those in flight go on.
func (p *Pool) Drain(id string) error { return p.setDrained(id, true) }

// Undrain ends a drain.
func (p *Pool) Undrain(id string) error { return p.setDrained(id, false) }

func (p *Pool) setDrained(id string, drained bool) error {
	p.mu.Lock()
	b := p.backends[id]
	p.mu.Unlock()
	if b == nil {
		return fmt.Errorf("drain backend %s: %w", id, ErrUnknown)
	}
	changed := false
	b.change(func(c *condition, _ time.Time) { c.drained, changed = drained, c.drained != drained })
	if changed {
		p.log.Info("backend drain changed", "backend", id, "draining", drained)
	}
	return nil
}

// Probe asks for a probe now: somebody else sees another health than this node
// does. At most one a second is granted to each backend.
func (p *Pool) Probe(id string) {
	p.mu.Lock()
	b := p.backends[id]
	p.mu.Unlock()
	if b != nil && b.hinted(time.Since(p.started)) {
		b.probeNow()
	}
}

// eject opens a backend's breaker, unless that would leave fewer than half of the
// backends of one of its models.
func (p *Pool) eject(b *Backend, f Failure) {
	p.mu.Lock()
	if !p.view.Load().spare(b) {
		p.mu.Unlock()
		return
	}
	opened := false
	b.change(func(c *condition, now time.Time) {
		if opened = c.breaker.ripe(p.config.BreakerFailures); opened {
			c.breaker.open(f, now, spread())
		}
	})
	p.mu.Unlock()
	if !opened {
		return
	}
	b.count.opens[f].Add(1)
	p.log.Warn("backend breaker opened", "backend", b.config.ID, "reason", f.String())
	b.probeNow()
}

// Ready reports whether the first discovery of every backend that was configured
// at the start has ended or timed out.
func (p *Pool) Ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending == 0
}

// WaitReady waits until Ready, at most as long as ctx.
func (p *Pool) WaitReady(ctx context.Context) error {
	for {
		p.mu.Lock()
		ready, settled := p.pending == 0, p.settled
		p.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return fmt.Errorf("wait for backends: %w", ctx.Err())
		}
	}
}

// discovered ends a backend's part in readiness.
func (p *Pool) discovered(b *Backend) {
	if !b.early {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending--; p.pending == 0 {
		close(p.settled)
		p.settled = make(chan struct{})
	}
}
