package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
)

// Bounds of the batch that gathers what is learned.
const (
	// flushBytes is how large a batch may grow before it goes sooner.
	flushBytes = 32 << 10
	// batchBytes bounds a batch: what is beyond is lost, and everyone is dirty.
	batchBytes = 512 << 10
)

// outbox gathers runs for all peers: each is encoded once, and one copy of a
// batch is shared by all links.
type outbox struct {
	mu    sync.Mutex
	batch []byte
	since time.Duration // when the first run of the batch came
	lost  bool
	full  chan struct{} // flushBytes are reached
}

func newOutbox() outbox { return outbox{full: make(chan struct{}, 1)} }

func (o *outbox) add(r *wire.Run, now time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.batch) == 0 {
		o.since = now
	}
	if len(o.batch)+8*len(r.Hashes)+64 > batchBytes {
		o.lost = true
		return
	}
	if o.batch = wire.AppendRun(o.batch, r); len(o.batch) >= flushBytes {
		nudge(o.full)
	}
}

func nudge(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// take returns the batch, and begins another.
func (o *outbox) take() (batch []byte, since time.Duration, lost bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	batch, since, lost = append([]byte(nil), o.batch...), o.since, o.lost
	o.batch, o.lost = o.batch[:0], false
	return batch, since, lost
}

// sending is the stream of deltas to one peer.
type sending struct {
	mu  sync.Mutex
	seq uint64
	// sent holds when the runs were learned of the frames that are not yet
	// acknowledged, to measure by; it is a sample once it is full.
	sent []sentDelta
	// dirty is set where the peer lacks something that was not sent, until it has
	// compared.
	dirty atomic.Bool
	lag   atomic.Int64 // in nanoseconds
}

type sentDelta struct {
	seq   uint64
	since time.Duration
}

// maxSent bounds the frames that are measured at a time.
const maxSent = 256

// smallDelta is how much may go with what is urgent, in one write, where no other
// delta waits that it would overtake.
const smallDelta = 4 << 10

// sendDelta sends one batch. A frame that is not taken leaves a gap in the
// numbers, by which the peer knows.
func (c *Cluster) sendDelta(p *peer, l peerLink, batch []byte, since time.Duration) {
	s := &p.out
	lane := link.Deltas
	if len(batch) <= smallDelta && l.Queued(link.Deltas) == 0 {
		lane = link.Urgent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	var header [8]byte
	if !p.send(lane, wire.Delta, wire.AppendDelta(header[:0], s.seq), batch) {
		if !s.dirty.Swap(true) {
			c.metrics.overflows.Inc()
		}
		return
	}
	c.metrics.deltaBytes.Add(float64(len(batch)))
	if len(s.sent) < maxSent {
		s.sent = append(s.sent, sentDelta{s.seq, since})
	}
}

// acked takes an Ack: the peer has applied all up to seq.
func (c *Cluster) acked(p *peer, r *wire.Reader) {
	seq, held := r.Ack()
	if r.Bad() {
		c.malformed(p, wire.Ack)
		return
	}
	s := &p.out
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.sent) && s.sent[n].seq <= seq {
		n++
	}
	if n == 0 {
		return
	}
	s.lag.Store(int64(max(c.cfg.Now()-s.sent[n-1].since-held, 0)))
	s.sent = append(s.sent[:0], s.sent[n:]...)
}

// remind makes a gap in the numbers visible to a peer that has missed something
// and may hear nothing else for a while.
func (c *Cluster) remind(p *peer) {
	if l := p.connected(); l != nil && p.out.dirty.Load() && c.shares(l) && l.Queued(link.Deltas) == 0 {
		c.sendDelta(p, l, nil, c.cfg.Now())
	}
}

// shares is whether locations mean the same at both ends of a link.
func (c *Cluster) shares(l peerLink) bool { return l.Hello().BlockSize == c.cfg.BlockSize }
