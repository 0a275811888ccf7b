package feed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kvca/proxy/engine/zmtp"
)

// Feed reads one engine's events into one sink.
type Feed struct {
	config   Config
	inbox    *inbox
	listener *listener
	expected atomic.Int64 // Expect calls that the worker has not seen
	status   atomic.Pointer[snapshot]
}

// New makes a feed. It reports all faults of its configuration at once.
func New(c Config) (*Feed, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c.setDefaults()
	f := &Feed{config: c, inbox: newInbox(c.MaxQueue)}
	f.listener = &listener{inbox: f.inbox}
	f.status.Store(&snapshot{state: "connecting"})
	return f, nil
}

// Run feeds the sink until ctx ends, and returns ctx's error. When it returns, the
// sink is not live, holds nothing, and is not called any more. It runs once.
func (f *Feed) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var sockets sync.WaitGroup
	var fault error
	sockets.Go(func() {
		defer cancel()
		fault = zmtp.Subscribe(ctx, zmtp.Config{
			Endpoint: f.config.Endpoint, Bind: f.config.Bind, Subscribe: []string{f.config.Topic},
			Failed: f.listener.failed, Logger: f.config.Logger,
		}, f.listener)
	})
	newWorker(ctx, f).run(ctx)
	cancel()
	sockets.Wait()
	return fault
}

// Expect says that a request was answered that must have caused events: it had
// blocks that the engine did not hold. Any goroutine may call it.
func (f *Feed) Expect() {
	if f.expected.Add(1) == expectedLeast {
		f.inbox.poke()
	}
}

// Void says that the engine's cache is known to be gone: it was told to clear it
// or to sleep, of which an idle engine says nothing before its next request. For an
// engine that has restarted it is needed only without a replay socket; with one the
// feed notices, and a Void that comes later forgets what was learned since.
func (f *Feed) Void() { f.inbox.put(item{kind: voidMark}) }

// Resync has all there is asked for again, since the sink has not taken all that it
// was told. What is known stays until the answer begins. Without a replay socket
// there is nobody to ask, and nothing happens.
func (f *Feed) Resync() { f.inbox.put(item{kind: resyncMark}) }

// worker is the one goroutine that touches machine and sink.
type worker struct {
	*Feed
	machine *machine
	keeper  keeper
	fetcher fetcher
	last    time.Time
	telling telling
}

func newWorker(ctx context.Context, f *Feed) *worker {
	w := &worker{Feed: f}
	w.machine = newMachine(&f.config, w, f.config.Now())
	w.keeper = keeper{sink: f.config.Sink, counts: &w.machine.counts}
	w.fetcher = fetcher{ctx: ctx, config: &f.config, inbox: f.inbox}
	return w
}

func (w *worker) run(ctx context.Context) {
	defer w.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.inbox.wake:
		case <-timer.C:
		}
		w.turn(ctx)
		if at := w.machine.deadline(); at > 0 {
			timer.Reset(max(at-w.config.Now(), 0))
		} else {
			timer.Stop()
		}
	}
}

// end leaves a sink that claims nothing, since nobody keeps it true.
func (w *worker) end() {
	w.fetcher.close()
	w.config.Sink.SetLive(false)
	w.config.Sink.Reset()
	s := *w.status.Load()
	s.state, s.problem = "connecting", ""
	w.status.Store(&s)
}

// turn does all there is to do.
func (w *worker) turn(ctx context.Context) {
	items, dropped := w.inbox.take()
	for i := range items {
		if ctx.Err() != nil {
			return
		}
		w.handle(&items[i])
		items[i] = item{}
	}
	now := w.config.Now()
	if n := w.expected.Swap(0); n > 0 && w.machine.mode != connecting {
		w.machine.silence.expect(now, int(min(n, expectedLeast)), w.config.SilentAfter)
	}
	w.machine.tick(now)
	w.tell(dropped)
}

func (w *worker) handle(i *item) {
	m, now := w.machine, w.config.Now()
	switch i.kind {
	case liveBatch:
		w.last = time.Now()
		m.arrived(now, i.batch)
	case replayBatch:
		w.last = time.Now()
		m.replayed(now, i.id, i.batch)
	case replayEnd:
		m.ended(now, i.id)
	case replayFailed:
		m.failed(now, i.id, i.err)
	case connectionUp:
		m.connected(now)
	case connectionDown:
		m.disconnected(now, i.err)
	case connectionFailed:
		m.unreachable(i.err)
	case otherEngine:
		m.other()
	case malformed:
		m.malformed(i.err)
	case lossMark:
		m.lost(now)
	case voidMark:
		m.void()
	case resyncMark:
		m.resync()
	}
}
