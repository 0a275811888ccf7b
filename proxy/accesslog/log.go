package accesslog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"kvca/proxy/record"
)

// Log is an access log; it implements record.Observer.
type Log struct {
	cfg     Config
	client  *clients
	sink    *sink
	metrics *metrics
	random  func() float64
	scratch sync.Pool // of *[]byte: lines are formatted outside the lock

	mu      sync.Mutex
	pending []byte // lines that wait to be written
	closed  bool

	wake  chan struct{} // something is pending
	hurry chan struct{} // half of the bound is
	stop  chan struct{}
	done  chan struct{} // the writer has ended
}

// Open begins to log.
func Open(cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := openSink(cfg.Path, cfg.standard)
	if err != nil {
		return nil, fmt.Errorf("open access log: %w", err)
	}
	l := &Log{
		cfg: cfg, client: newClients(cfg.Client, cfg.Key), sink: s, metrics: newMetrics(cfg.Registerer), random: rand.Float64,
		scratch: sync.Pool{New: func() any { b := make([]byte, 0, maxLine); return &b }},
		wake:    make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go l.write()
	return l, nil
}

// Ended implements record.Observer. It never waits for the file.
func (l *Log) Ended(r *record.Record) {
	kept := l.keeps(r)
	if kept == "" {
		return
	}
	b := l.scratch.Get().(*[]byte)
	*b = l.format((*b)[:0], r, kept)
	l.put(*b)
	l.scratch.Put(b)
}

// Why a request has a line.
const (
	keptSample = "sample"
	keptError  = "error"
	keptSlow   = "slow"
)

// keeps says why the request gets a line, "" where it gets none.
func (l *Log) keeps(r *record.Record) string {
	switch {
	case r.Status < 100 || r.Status >= 400 || r.Code != "":
		return keptError
	case l.cfg.Slow > 0 && r.Duration >= l.cfg.Slow:
		return keptSlow
	case l.cfg.Ratio >= 1 || l.cfg.Ratio > 0 && l.random() < l.cfg.Ratio:
		return keptSample
	}
	return ""
}

// put appends a line to what is pending, or drops it.
func (l *Log) put(line []byte) {
	l.mu.Lock()
	before := len(l.pending)
	switch {
	case l.closed:
		l.mu.Unlock()
		l.metrics.closed.Inc()
		return
	case before+len(line) > l.cfg.MaxBytes:
		l.mu.Unlock()
		l.metrics.full.Inc()
		return
	}
	l.pending = append(l.pending, line...)
	after := len(l.pending)
	l.mu.Unlock()
	if before == 0 {
		signal(l.wake)
	}
	if half := l.cfg.MaxBytes / 2; before < half && after >= half {
		signal(l.hurry)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is known already
	}
}

// Reopen opens the file anew, after it was moved away. What was pending goes to
// the new one.
func (l *Log) Reopen() error {
	if err := l.sink.reopen(time.Now()); err != nil {
		return fmt.Errorf("reopen access log: %w", err)
	}
	return nil
}

// Close writes what is pending and ends the log; requests that end later have no
// line. It waits for the file no longer than until ctx ends.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if !again {
		close(l.stop)
	}
	select {
	case <-l.done:
		return l.sink.close()
	case <-ctx.Done():
		return fmt.Errorf("close access log: what is pending could not be written in time: %w", ctx.Err())
	}
}
