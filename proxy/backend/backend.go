package backend

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"kvca/router"
)

// Backend is one engine as the pool knows it: the connections to it, its
// condition, and what it last said of itself.
type Backend struct {
	config        Config // Weight, Models, CacheTokens and Zone are guarded by mu, the rest is fixed
	base          *url.URL
	pool          *Pool
	facts         *router.Backend
	data          *http.Transport
	probes        *http.Transport
	outline       *http.Request // what every request starts as a copy of
	authorization []string
	probeHeader   http.Header

	cancel context.CancelFunc // ends the watcher
	done   chan struct{}      // closed when it has ended
	wake   chan struct{}      // asks it for a probe now
	early  bool               // readiness waits for its first discovery

	relist atomic.Bool // asks the watcher, once it is woken, for the model list

	hint  atomic.Int64 // when a hint may count again, since the pool's start
	busy  atomic.Bool  // a success would change the condition: take the lock
	begun atomic.Bool  // has served a request since the last probe
	count counters

	mu     sync.Mutex // guards what follows; taken after Pool.mu
	cond   condition
	engine engineState
}

// counters only grow.
type counters struct {
	staleRetries   atomic.Uint64
	probeFailures  atomic.Uint64
	scrapeFailures atomic.Uint64
	opens          [len(failureNames)]atomic.Uint64 // by reason
}

// engineState is what the engine said of itself.
type engineState struct {
	load       engineLoad
	generation uint64
	cards      []ModelCard
	models     []string // served now
	everServed map[string]bool
}

func newBackend(c Config, base *url.URL, p *Pool) (*Backend, error) {
	data, err := newTransport(c, base.Scheme, p.config)
	if err != nil {
		return nil, err
	}
	b := &Backend{
		config: c, base: base, pool: p, data: data,
		probes: newProbeTransport(data, p.config),
		done:   make(chan struct{}),
		wake:   make(chan struct{}, 1),
	}
	if base.Scheme == "h2c" {
		wire := *base
		wire.Scheme = "http"
		b.base = &wire
	}
	b.outline = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: base.Host}
	if c.APIKey != "" {
		b.authorization = []string{"Bearer " + c.APIKey}
	}
	b.probeHeader = b.authorized(http.Header{"User-Agent": {"kvca-probe"}})
	b.cond.since, b.cond.drained = time.Now(), c.Draining
	b.serve(c.Models)
	return b, nil
}

// Facts is what decisions read of the backend.
func (b *Backend) Facts() *router.Backend { return b.facts }

// ID is the backend's stable name.
func (b *Backend) ID() string { return b.config.ID }

// Config is what the backend was added with, its defaults filled in, and what
// Change has made of that. Its slices must not be changed.
func (b *Backend) Config() Config {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config
}

// Health is what the node sees: starting, healthy, unhealthy or draining.
func (b *Backend) Health() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cond.shown()
}

// Report tells the backend's breaker what a request came to. chain names the
// prompt: a fingerprint of its chain, the same for the same prompt on every
// backend, of the body where there is no chain. A success is reported when the
// response begins. A request that its client abandoned is not reported.
func (b *Backend) Report(f Failure, chain uint64) {
	switch f {
	case LocalFailure:
	case NoFailure:
		b.succeeded()
	default:
		b.failed(f, chain)
	}
}

func (b *Backend) succeeded() {
	if !b.begun.Load() {
		b.begun.Store(true)
	}
	if !b.busy.Load() {
		return
	}
	b.change(func(c *condition, now time.Time) { c.succeeded(now) })
	if b.facts.Standing() == router.Unhealthy {
		b.probeNow()
	}
}

func (b *Backend) failed(f Failure, chain uint64) {
	var ripe bool
	b.change(func(c *condition, _ time.Time) {
		ripe = c.breaker.fail(f, chain, b.pool.config.BreakerFailures)
	})
	if ripe {
		b.pool.eject(b, f)
	}
}

// refused takes the backend out at once: nobody listens there.
func (b *Backend) refused(err error) {
	b.change(func(c *condition, now time.Time) {
		c.down(now, true)
		c.lastErr = err.Error()
	})
	b.data.CloseIdleConnections()
	b.probeNow()
}

// probeNow asks the watcher for a probe; one that is asked for already will do.
func (b *Backend) probeNow() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// hintEvery is the least time between two probes that peers cause.
const hintEvery = time.Second

// hinted reports whether a peer's hint at the time now may cause a probe.
func (b *Backend) hinted(now time.Duration) bool {
	next := b.hint.Load()
	return int64(now) >= next && b.hint.CompareAndSwap(next, int64(now+hintEvery))
}

// change is the only way that the condition changes: it publishes the facts that
// decisions read and logs what became of them.
func (b *Backend) change(f func(c *condition, now time.Time)) {
	now := time.Now()
	b.mu.Lock()
	before, beforeBreaker, shown := b.cond.standing(), b.cond.breaker.state, b.cond.shown()
	f(&b.cond, now)
	changed := b.cond.shown() != shown
	after, breaker, why := b.cond.standing(), b.cond.breaker.state, b.cond.lastErr
	b.facts.SetStanding(after)
	speed := b.cond.speed(b.config.Weight, b.pool.config.SlowStart, now)
	b.facts.SetSpeed(speed)
	if speed == b.config.Weight {
		b.cond.returned = time.Time{}
	}
	b.busy.Store(b.cond.health == unhealthy || !b.cond.breaker.clean())
	b.mu.Unlock()
	b.log(before, after, why)
	if beforeBreaker == breakerOpen && breaker == breakerClosed && after == router.Available {
		b.pool.log.Info("backend breaker closed", "backend", b.config.ID)
	}
	if changed { // never by a breaker, whose opening comes with the pool's lock held
		b.pool.config.OnChange()
	}
}

func (b *Backend) log(before, after router.Standing, why string) {
	switch {
	case before == after:
	case after == router.Available:
		b.pool.log.Info("backend healthy", "backend", b.config.ID, "was", before.String())
	case after == router.Unhealthy:
		b.pool.log.Warn("backend unhealthy", "backend", b.config.ID, "was", before.String(), "error", why)
	}
}

// spread is a random number from 0 to 1 that keeps backends out of step.
func spread() float64 { return rand.Float64() }
