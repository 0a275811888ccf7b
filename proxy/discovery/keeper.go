package discovery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/proxy/backend"
)

// Pool is what the Keeper needs of the pool of backends.
type Pool interface {
	Add(c backend.Config) error
	// Change gives a backend another weight, cache size, zone and list of models.
	Change(c backend.Config) error
	Remove(id string) error
	Drain(id string) error
	Undrain(id string) error
	Status() []backend.Status
}

var _ Pool = (*backend.Pool)(nil)

const (
	// readyAfter is how long readiness waits for sources that do not answer.
	readyAfter = 3 * time.Second
	// lookEvery is the time between two looks at backends that are on their way out.
	lookEvery = time.Second

	usualDrain = time.Minute
)

// Keeper keeps a pool in step with what sources find.
type Keeper struct {
	// DrainTimeout is how long a backend that is gone may go on with its requests
	// before it is removed; set it before Run. Default 1 min. Requests go on even
	// then: what a removal ends is what the gateway knows of them and of the cache.
	DrainTimeout time.Duration

	pool    Pool
	sources []Source
	log     *slog.Logger
	news    chan struct{}
	ready   atomic.Bool

	mu   sync.Mutex // guards book
	book *book

	warned map[clash]bool // of Run's goroutine
}

// NewKeeper makes a keeper of pool; where two sources name one backend, the first
// counts. reg takes its metrics, nil for none.
func NewKeeper(pool Pool, sources []Source, log *slog.Logger, reg prometheus.Registerer) *Keeper {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{
		DrainTimeout: usualDrain,
		pool:         pool, log: log, news: make(chan struct{}, 1), book: newBook(0, 0), warned: make(map[clash]bool),
	}
	named := make(map[string]bool)
	for _, s := range sources {
		if named[s.String()] {
			log.Warn("a discovery source is given twice", "source", s.String())
			continue
		}
		named[s.String()] = true
		k.sources = append(k.sources, s)
	}
	k.book = newBook(len(k.sources), usualDrain)
	if reg != nil {
		reg.MustRegister(newCollector(k))
	}
	return k
}

// Ready reports whether each source has answered once, or Run has waited for that
// long enough.
func (k *Keeper) Ready() bool { return k.ready.Load() }

// Run follows the sources until ctx ends, and returns when all of them have. The
// backends stay.
func (k *Keeper) Run(ctx context.Context) {
	k.mu.Lock()
	k.book.drain = k.DrainTimeout
	k.mu.Unlock()
	k.ready.Store(len(k.sources) == 0)
	var work sync.WaitGroup
	defer work.Wait()
	for i, s := range k.sources {
		work.Go(func() { s.Run(ctx, func(list []backend.Config) { k.hear(i, list) }) })
	}
	patience := time.NewTimer(readyAfter)
	defer patience.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.news:
			k.reconcile()
		case <-look.C:
			if k.waits() {
				k.reconcile()
			}
		case <-patience.C:
			k.ready.Store(true)
		}
	}
}

// hear is called by a source, on its own goroutine.
func (k *Keeper) hear(source int, list []backend.Config) {
	k.mu.Lock()
	k.book.hear(source, list, time.Now())
	k.mu.Unlock()
	select {
	case k.news <- struct{}{}:
	default:
	}
}

func (k *Keeper) waits() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.book.waits()
}

// reconcile makes the pool agree with the sources. The pool is called without the
// lock, since removing a backend waits for its watcher.
func (k *Keeper) reconcile() {
	pool := make(map[string]backend.Status)
	for _, s := range k.pool.Status() {
		pool[s.ID] = s
	}
	k.mu.Lock()
	steps, clashes := k.book.plan(time.Now(), pool)
	heard := k.book.heard()
	k.mu.Unlock()
	k.warn(clashes)
	for _, s := range steps {
		err := k.do(s)
		k.mu.Lock()
		k.book.done(s, err, time.Now())
		k.mu.Unlock()
		if err != nil && !errors.Is(err, backend.ErrUnknown) && !errors.Is(err, backend.ErrClosed) {
			k.log.Warn("discovery: the pool refuses", "step", s.verb.String(), "backend", s.config.ID, "error", err)
		}
	}
	if heard {
		k.ready.Store(true)
	}
}

func (k *Keeper) do(s step) error {
	switch s.verb {
	case addIt:
		return k.pool.Add(s.config)
	case changeIt:
		return k.pool.Change(s.config)
	case drainIt:
		return k.pool.Drain(s.config.ID)
	case undrainIt:
		return k.pool.Undrain(s.config.ID)
	default:
		return k.pool.Remove(s.config.ID)
	}
}

// warn tells of each clash once, as long as it lasts.
func (k *Keeper) warn(clashes []clash) {
	now := make(map[clash]bool, len(clashes))
	for _, c := range clashes {
		if now[c] = true; !k.warned[c] {
			k.log.Warn("discovery: a backend's id is taken, the first one counts", "backend", c.id, "source", k.sources[c.source].String(), "taken_by", c.of(k.sources))
		}
	}
	k.warned = now
}
