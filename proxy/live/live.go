package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kvca/proxy/record"
)

// Config is where a Live gets what no record says.
type Config struct {
	// InFlight is how many requests are being served, Queued how many wait for
	// their turn; nil for 0.
	InFlight, Queued func() int64
	// Now is the clock; nil for the system's.
	Now func() time.Time
}

// Live is the last ten minutes of a node. Its methods may be called from any
// goroutine.
type Live struct {
	cfg Config

	traffic struct {
		sync.Mutex
		seconds
	}
	recent struct {
		sync.Mutex
		decisions
	}
	asked  atomic.Int64 // when /decisions was last asked for, in Unix seconds
	detail atomic.Int64 // how many more decisions may list candidates this second
}

// New makes a Live that has seen nothing.
func New(c Config) *Live {
	none := func() int64 { return 0 }
	if c.InFlight == nil {
		c.InFlight = none
	}
	if c.Queued == nil {
		c.Queued = none
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Live{cfg: c}
}

var _ record.Observer = (*Live)(nil)

// Ended counts a request and keeps its decision. It copies what it keeps.
func (l *Live) Ended(r *record.Record) {
	at := l.cfg.Now().Unix()
	l.traffic.Lock()
	l.traffic.now(at).add(r)
	l.traffic.Unlock()
	if r.Decision == nil {
		return
	}
	l.recent.Lock()
	l.recent.add(r)
	l.recent.Unlock()
}

// detailsPerSecond is how many decisions a second list their candidates while
// somebody looks, and lookTime how long one question counts as looking.
const (
	detailsPerSecond = 5
	lookTime         = 10 // seconds
)

// WantsDetail is whether the next decision should list its candidates.
func (l *Live) WantsDetail() bool {
	return l.detail.Load() > 0 && l.detail.Add(-1) >= 0
}

// Run notes once a second what is under way, until the context ends.
func (l *Live) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		l.beat()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l *Live) beat() {
	at := l.sample()
	var details int64
	if at-l.asked.Load() < lookTime {
		details = detailsPerSecond
	}
	l.detail.Store(details)
}

// sample notes what is under way and returns the second.
func (l *Live) sample() int64 {
	at, inFlight, queued := l.cfg.Now().Unix(), l.cfg.InFlight(), l.cfg.Queued()
	l.traffic.Lock()
	defer l.traffic.Unlock()
	b := l.traffic.now(at)
	b.inFlight, b.queued = max(b.inFlight, inFlight), max(b.queued, queued)
	return b.at
}

// second copies one second's bucket.
func (l *Live) second(at int64, b *second) bool {
	l.traffic.Lock()
	defer l.traffic.Unlock()
	return l.traffic.get(at, b)
}

// decision copies one decision.
func (l *Live) decision(seq uint64, detail bool, k *Decision) bool {
	l.recent.Lock()
	defer l.recent.Unlock()
	return l.recent.get(seq, detail, k)
}

func (l *Live) newestDecision() uint64 {
	l.recent.Lock()
	defer l.recent.Unlock()
	return l.recent.newest
}
