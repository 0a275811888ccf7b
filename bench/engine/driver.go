package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// tick is the shortest sleep between two looks at the engine. Tokens that fall due within it are delivered together, which keeps
// a fast-forwarded engine cheap; the engine's own times are not rounded.
const tick = time.Millisecond

var (
	errClientGone = errors.New("client has left")
	errStopped    = errors.New("engine has stopped")
)

// ticket is where the driver leaves what has happened to a request. Guarded by driver.mu.
type ticket struct {
	note               chan<- struct{}
	produced, cached   int
	started, done, bad bool
}

// driver runs an Engine against the clock. Its goroutine takes the steps as they fall due; handlers enter and withdraw requests
// under the lock and are woken through a channel of one element, so that a slow reader costs no memory.
type driver struct {
	speedup float64
	wake    chan struct{}
	stopped chan struct{} // closed when the goroutine has ended

	mu        sync.Mutex
	engine    *Engine
	start     time.Time
	tickets   map[uint64]*ticket
	lastID    uint64
	cancelled uint64
	stop      context.CancelFunc
}

func newDriver(p Profile, speedup float64) *driver {
	e := New(p)
	e.ReportTokens(true)
	return &driver{
		speedup: speedup, engine: e, tickets: make(map[uint64]*ticket),
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
}

// launch starts the goroutine; a second call does nothing.
func (d *driver) launch(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		return
	}
	ctx, d.stop = context.WithCancel(ctx)
	d.start = time.Now()
	go d.loop(ctx)
}

// close ends the goroutine and waits for it.
func (d *driver) close() {
	d.mu.Lock()
	stop := d.stop
	if stop == nil {
		d.stop = func() {}
		close(d.stopped)
	}
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
	<-d.stopped
}

func (d *driver) running() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.stopped:
		return false
	default:
		return d.stop != nil
	}
}

func (d *driver) loop(ctx context.Context) {
	defer close(d.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(d.turn())
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-d.wake:
		}
	}
}

// turn takes the steps that are due and returns how long to sleep.
func (d *driver) turn() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.advance()
	next, ok := d.engine.Next()
	if !ok {
		return time.Hour
	}
	return max(tick, time.Duration(float64(next-now)/d.speedup))
}

// advance brings the engine up to the present. The caller holds mu.
func (d *driver) advance() time.Duration {
	now := time.Duration(float64(time.Since(d.start)) * d.speedup)
	d.engine.Advance(now, d.deliver)
	return now
}

func (d *driver) deliver(ev Event) {
	t, ok := d.tickets[ev.ID]
	if !ok {
		return
	}
	t.produced += ev.Tokens
	t.cached = ev.CachedTokens
	t.started = true
	t.bad = ev.Kind == Rejected
	if t.done = t.bad || ev.Kind == Done; t.done {
		delete(d.tickets, ev.ID)
	}
	select {
	case t.note <- struct{}{}:
	default:
	}
}

// submit enters requests, all at once, and returns their tickets.
func (d *driver) submit(jobs []*job, note chan<- struct{}) []*ticket {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.advance()
	list := make([]*ticket, len(jobs))
	for i, j := range jobs {
		d.lastID++
		j.req.ID = d.lastID
		list[i] = &ticket{note: note}
		d.tickets[j.req.ID] = list[i]
		d.engine.Submit(now, j.req)
	}
	d.poke()
	return list
}

// read copies the tickets into the jobs and says whether all are done.
func (d *driver) read(list []*ticket, jobs []*job) (done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	done = true
	for i, t := range list {
		j := jobs[i]
		j.produced, j.cached, j.started, j.done, j.bad = t.produced, t.cached, t.started, t.done, t.bad
		done = done && t.done
	}
	return done
}

// withdraw cancels those of the requests that still live.
func (d *driver) withdraw(jobs []*job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance()
	before := d.cancelled
	for _, j := range jobs {
		if _, ok := d.tickets[j.req.ID]; ok {
			delete(d.tickets, j.req.ID)
			d.engine.Cancel(j.req.ID)
			d.cancelled++
		}
	}
	if d.cancelled > before {
		d.poke()
	}
}

func (d *driver) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// follow enters jobs and calls step whenever some have got further, until all are done, step fails, the client leaves or the
// engine stops. Whatever the end, nothing of them stays in the engine.
func (d *driver) follow(ctx context.Context, jobs []*job, step func() error) error {
	note := make(chan struct{}, 1)
	list := d.submit(jobs, note)
	defer d.withdraw(jobs)
	for {
		select {
		case <-note:
		case <-ctx.Done():
			return errClientGone
		case <-d.stopped:
			return errStopped
		}
		done := d.read(list, jobs)
		if err := step(); err != nil || done {
			return err
		}
	}
}

// inspect runs f with the engine at rest and up to date.
func (d *driver) inspect(f func(*Engine)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		d.advance()
	}
	f(d.engine)
}
