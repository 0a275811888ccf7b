package cluster

import (
	"sync"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/kvindex"
)

// hearing is the stream of a source from whom it was chosen to come.
type hearing struct {
	mu     sync.Mutex
	source *kvindex.Source // nil while it is not chosen
	feed   *Feed           // of an agent's source: it is told on

	epoch, seq uint64
	begun      bool          // a stream has begun
	lost       bool          // some of it: nothing counts until another begins
	copied     bool          // the copy is whole
	want       bool          // KVWant could not be sent
	unacked    bool          // KVAck could not be sent
	moved      time.Duration // when something of it came, or it was asked for
	asked      time.Duration
}

// wantAgain is how long nothing may come of a stream that is wanted and not whole, or
// no longer: the copy that was asked for may have been dropped as a whole.
const wantAgain = 5 * time.Second

// askPause is the time between two times that a source is asked for: who tells gaps
// only must not be kept busy with copies.
const askPause = 250 * time.Millisecond

// begin takes the source that the stream goes into.
func (h *hearing) begin(source *kvindex.Source, f *Feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.source, h.feed = source, f
	h.epoch, h.seq, h.begun, h.lost, h.copied, h.unacked = 0, 0, false, false, false, false
}

// end forgets what was told. It gives the feed that is to be closed, where there is
// one.
func (h *hearing) end() *Feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	source, f := h.source, h.feed
	h.source, h.feed, h.want = nil, nil, false
	if f == nil && source != nil {
		source.Close()
	}
	return f
}

// ask asks whoever offers to tell all.
func (o *offer) ask(now time.Duration) {
	o.hearing.mu.Lock()
	defer o.hearing.mu.Unlock()
	o.askLocked(now)
}

func (o *offer) askLocked(now time.Duration) {
	if o.want = o.asked != 0 && now-o.asked < askPause; o.want {
		return // tend asks
	}
	o.moved, o.asked = now, now
	o.want = !o.send(link.Deltas, wire.KVWant, wire.AppendWant(nil, o.place.id, true))
}

// tend does what is due by time.
func (o *offer) tend(now time.Duration) {
	h := &o.hearing
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.want || (h.lost || !h.copied) && now-h.moved >= wantAgain {
		o.askLocked(now)
	}
	if h.unacked {
		o.acknowledge()
	}
}

// acknowledge tells how far the stream is applied. The caller holds hearing.mu.
func (o *offer) acknowledge() {
	o.unacked = !o.send(link.Deltas, wire.KVAck, wire.AppendKVAck(nil, o.place.id, o.epoch, o.seq))
}

// showLive has lookups see the source if it is live and whole. The caller holds
// index.mu.
func (o *offer) showLive(live bool) {
	h := &o.hearing
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.feed != nil:
		h.feed.setLive(live && h.copied)
		h.feed.setProblem(o.problem)
	case h.source != nil:
		h.source.SetLive(live && h.copied)
	}
}

// admit is what becomes of a part, by its number. The caller holds h.mu.
func (h *hearing) admit(part *wire.Part) (apply, gap bool) {
	switch {
	case h.source == nil:
		return false, false
	case part.Begin:
		if h.begun && part.Epoch <= h.epoch {
			return false, false // of an earlier one, late
		}
		h.epoch, h.begun, h.lost, h.copied = part.Epoch, true, false, false
		return true, false
	case h.begun && part.Epoch < h.epoch || h.lost:
		return false, false
	case h.begun && part.Epoch == h.epoch && part.Seq <= h.seq:
		return false, false
	}
	gap = !h.begun || part.Epoch != h.epoch || part.Seq != h.seq+1
	return !gap, gap
}

// take applies a part: content applies what it has. It returns whether the stream
// shows another state than before: whole, or at its beginning.
func (x *index) take(o *offer, part *wire.Part, content func() bool) (turned bool) {
	h, now := &o.hearing, x.c.cfg.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	apply, gap := h.admit(part)
	if !apply && !gap {
		return false
	}
	h.moved = now
	if apply {
		if part.Begin || part.Reset {
			h.source.Reset()
		}
		h.seq = part.Seq
		gap = !content()
	}
	if gap {
		h.lost = true
		x.c.metrics.index.gaps.Inc()
		o.askLocked(now)
		return false
	}
	if part.Last {
		h.copied = true
	}
	if part.Ack {
		o.acknowledge()
	}
	return part.Begin || part.Last
}
