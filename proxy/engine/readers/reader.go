package readers

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"kvca/proxy/engine/feed"
	"kvca/state/kvindex"
)

// Backend is one that is to be read.
type Backend struct {
	ID string
	// Incarnation tells two backends of one ID apart: any comparable value.
	Incarnation any
	// Host is its host, which stands in for the wildcards that engines bind.
	Host string
	// Events says where its events are, as feed.ParseSpec reads it.
	Events string
	// Do asks the engine itself.
	Do feed.Do
}

// Source takes what one rank of a backend holds.
type Source interface {
	feed.Sink
	// SetProblem says why it does not work, empty if it does.
	SetProblem(problem string)
	Stats() kvindex.SourceStats
	// Close ends it: what it was told is forgotten.
	Close()
}

// Config configures a Reader.
type Config struct {
	// Fleet lists the backends that are to be read, now.
	Fleet func() []Backend
	// Open opens what takes the events of one rank of a backend.
	Open func(backend string, rank int) (Source, error)
	// Room reports whether what the sources fill has room again, well below its bound:
	// a source that was not given all (Stats().Partial) is then started over by a
	// replay. It is asked once a second at most. Default: never.
	Room func() bool
	// Logger takes what an operator should know; nil for nobody.
	Logger *slog.Logger
}

// Reader keeps feeds on the backends of a fleet.
type Reader struct {
	cfg Config

	mu   sync.Mutex // guards what follows
	read map[string]*reading
}

// New makes a reader; Run gives it life.
func New(c Config) *Reader {
	if c.Room == nil {
		c.Room = func() bool { return false }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Reader{cfg: c, read: make(map[string]*reading)}
}

// lookEvery is the time between two looks at the fleet.
const lookEvery = time.Second

// Run reads until ctx ends, and returns when nothing of it is left.
func (r *Reader) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	defer r.stop(nil)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		r.look(ctx, &work)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look begins and ends readings as the fleet has changed.
func (r *Reader) look(ctx context.Context, work *sync.WaitGroup) {
	fleet := r.cfg.Fleet()
	wanted := make(map[string]*Backend, len(fleet))
	for i := range fleet {
		wanted[fleet[i].ID] = &fleet[i]
	}
	r.stop(wanted)
	r.mu.Lock()
	defer r.mu.Unlock()
	room, healed := sync.OnceValue(r.cfg.Room), false
	for id, b := range wanted {
		if one := r.read[id]; one != nil {
			one.tell()
			healed = healed || one.heal(time.Now(), room)
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		one := &reading{reader: r, backend: *b, cancel: cancel, done: make(chan struct{})}
		r.read[id] = one
		work.Go(func() {
			defer close(one.done)
			one.run(ctx)
		})
	}
}

// stop ends the readings that are not wanted any more, and waits for them: their
// sources are closed before others of the same name are opened.
func (r *Reader) stop(wanted map[string]*Backend) {
	r.mu.Lock()
	var over []*reading
	for id, one := range r.read {
		if b := wanted[id]; b == nil || b.Incarnation != one.backend.Incarnation || b.Events != one.backend.Events {
			delete(r.read, id)
			over = append(over, one)
		}
	}
	r.mu.Unlock()
	for _, one := range over {
		one.cancel()
	}
	for _, one := range over {
		<-one.done
	}
}

// Expect tells that a request was answered on a backend which must have computed
// new blocks: an engine that never tells of any is found out by it.
func (r *Reader) Expect(backend string) {
	r.mu.Lock()
	one := r.read[backend]
	r.mu.Unlock()
	if one != nil {
		one.expect()
	}
}

// Void tells that a backend's engine was seen to have restarted. Where there is a
// replay socket its feed finds out by itself, and exactly; where there is none, it
// could take the new engine's first batch for the old one's next.
func (r *Reader) Void(backend string) {
	r.mu.Lock()
	one := r.read[backend]
	r.mu.Unlock()
	if one != nil {
		one.void()
	}
}

// Pauses between two attempts to find out where an engine's events are.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// pause waits, a fifth more or less; false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(time.Duration((0.8 + 0.4*rand.Float64()) * float64(d)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// specs finds out where the backend's events are.
func (b *Backend) specs(ctx context.Context) ([]feed.Spec, error) {
	spec, err := feed.ParseSpec(b.Events)
	if err != nil || !spec.Auto {
		return []feed.Spec{spec}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	specs, err := feed.Discover(ctx, b.Host, b.Do)
	if err != nil {
		return nil, fmt.Errorf("ask %s where its events are: %w", b.ID, err)
	}
	return specs, nil
}

// askTimeout bounds the question to an engine.
const askTimeout = 5 * time.Second
