package cluster

import (
	"sync"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/kvindex"
)

// How sources are told. To each peer that wants it a source goes as one stream of
// numbered parts: pages of a copy first, the changes meanwhile among them, then
// changes. All that matters is that of each key the last word is the true one:
//
//   - a page is read and sent under the lock that changes are sent under, so a change
//     that is told before a page was made before the page was read;
//   - parts of a copy go by the bulk lane, and so do changes until the peer has
//     acknowledged all that went there; from then on they go by the lane of deltas.
//
// A part that can't be sent, or that the peer misses, ends the stream; another begins
// after a pause that grows.
const (
	// sourcePage is how many blocks a page has: about 12 KiB.
	sourcePage = 800
	// copyWindow is how much of all copies may be under way to a peer.
	copyWindow = 256 << 10
	// copyTurn is how much is read for copies at one time, for all peers.
	copyTurn = 1 << 20

	copyLane   = link.Bulk
	changeLane = link.Deltas

	minCopyPause = 250 * time.Millisecond
	maxCopyPause = 16 * time.Second
)

// telling is one source on its way to one peer.
type telling struct {
	f *Feed

	mu sync.Mutex // guards what follows
	// wanted says that the peer wants it, offered that it knows the offer as it is.
	wanted, offered bool
	// active says that there is a stream; without one that is wanted, another begins
	// at due.
	active bool
	due    time.Duration
	pause  time.Duration
	began  time.Duration

	epoch, seq uint64
	copying    bool
	cursor     uint64
	lastBulk   uint64 // the last part that went by the bulk lane
	settled    bool   // all of them are applied
	pages      []pageSent
	bytes      int // of pages
}

type pageSent struct {
	seq   uint64
	bytes int
}

// stop ends the stream, if there is one.
func (t *telling) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted = false
	t.halt()
}

func (t *telling) halt() {
	if t.active {
		t.active, t.copying, t.pages, t.bytes = false, false, nil, 0
		t.f.audience.Add(-1)
	}
}

// fail ends a stream that the peer can't follow; another begins after a pause.
func (t *telling) fail(now time.Duration) {
	if t.active && now-t.began > 8*t.pause {
		t.pause = minCopyPause
	}
	t.halt()
	if t.due <= now {
		t.due = now + t.pause
		t.pause = min(2*t.pause, maxCopyPause)
	}
}

// hearWant takes what a peer wants.
func (x *index) hearWant(p *peer, r *wire.Reader) {
	id, want := r.Want()
	if r.Bad() {
		return
	}
	t := p.tells.get(id)
	if t == nil {
		if want {
			p.tells.goneAgain([]wire.SourceID{id})
			nudge(x.c.stir)
		}
		return
	}
	t.mu.Lock()
	switch {
	case !want:
		t.wanted = false
		t.halt()
	case t.active:
		x.c.metrics.index.copies.again.Inc()
		t.fail(x.c.cfg.Now())
	case !t.wanted:
		x.c.metrics.index.copies.first.Inc()
		t.wanted = true
	}
	t.mu.Unlock()
	p.tells.owe(t)
	nudge(x.c.stir)
}

// hearAck takes how far a peer has applied a stream.
func (x *index) hearAck(p *peer, r *wire.Reader) {
	id, epoch, seq := r.KVAck()
	if r.Bad() {
		return
	}
	t := p.tells.get(id)
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.active || t.epoch != epoch {
		return
	}
	n := 0
	for n < len(t.pages) && t.pages[n].seq <= seq {
		t.bytes -= t.pages[n].bytes
		n++
	}
	t.pages = append(t.pages[:0], t.pages[n:]...)
	if t.copying {
		nudge(x.c.stir)
	} else if seq >= t.lastBulk {
		t.settled = true
	}
}

// tellSources tells a peer what is new of this node's sources. turn is what may be
// read for copies yet. It is called by the pump, and no one else tells.
func (x *index) tellSources(p *peer, all []feedNews, turn *int) {
	due, gone := p.tells.take()
	for i, id := range gone {
		if !p.send(changeLane, wire.KVOffer, wire.AppendSourceOffer(nil, &wire.SourceOffer{ID: id, Gone: true})) {
			p.tells.goneAgain(gone[i:])
			return
		}
	}
	for i := range all {
		if t := p.tells.get(all[i].f.place.id); t != nil && t.f == all[i].f {
			x.tellChanges(p, t, &all[i])
		}
	}
	room := copyWindow
	for _, t := range due {
		t.mu.Lock()
		room -= t.bytes
		t.mu.Unlock()
	}
	for _, t := range due {
		t.mu.Lock()
		if x.tellSource(p, t, &room, turn) {
			p.tells.settle(t)
		}
		t.mu.Unlock()
	}
}

// tellChanges sends one batch of changes, in parts that are not so long that what is
// urgent would wait for one.
func (x *index) tellChanges(p *peer, t *telling, n *feedNews) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.active {
		return
	}
	sent := !n.lost
	for from, i := 0, 0; sent && (i == 0 || from < len(n.batch)); i++ {
		part := wire.Part{Reset: n.reset && i == 0, BlockSize: n.blockSize}
		if part.Reset && t.copying { // what is told from here on is all there is
			t.copying, part.Last = false, true
		}
		to := len(n.batch)
		if i < len(n.cuts) {
			to = n.cuts[i]
		}
		sent = t.send(p, &part, n.batch[from:to])
		from = to
	}
	if sent {
		x.c.metrics.index.changeBytes.Add(float64(len(n.batch)))
		return
	}
	x.c.metrics.index.copies.overflow.Inc()
	t.fail(x.c.cfg.Now())
	p.tells.owe(t)
}

// send sends a part by the lane that keeps the order. The caller holds mu.
func (t *telling) send(p *peer, part *wire.Part, held []byte) bool {
	lane := changeLane
	if !t.settled {
		lane, part.Ack = copyLane, true
	}
	part.ID, part.Epoch, part.Seq, part.Begin = t.f.place.id, t.epoch, t.seq+1, t.seq == 0
	head := wire.AppendPart(nil, part)
	if !p.send(lane, wire.KVPart, head, held) {
		return false
	}
	if t.seq++; lane == copyLane {
		t.lastBulk = t.seq
	}
	return true
}

// tellSource does what is due for a source at a peer, and says whether that is all.
// The caller holds t.mu.
func (x *index) tellSource(p *peer, t *telling, room, turn *int) (done bool) {
	if !t.offered {
		o := t.f.offer()
		if t.offered = p.send(changeLane, wire.KVOffer, wire.AppendSourceOffer(nil, &o)); !t.offered {
			return false
		}
	}
	if !t.wanted {
		return true
	}
	if !t.active {
		now := x.c.cfg.Now()
		if now < t.due {
			return false
		}
		t.start(x.epochs.Add(1), now)
	}
	for t.copying && *room > 0 && *turn > 0 {
		n := t.page(p)
		if n == 0 {
			return false
		}
		x.c.metrics.index.copyBytes.Add(float64(n))
		*room -= n
		*turn -= n
	}
	return !t.copying
}

// start begins a stream. The changes of the source are told from here on, so that
// none is missed that the copy does not have.
func (t *telling) start(epoch uint64, now time.Duration) {
	t.active, t.began = true, now
	t.epoch, t.seq, t.lastBulk, t.settled = epoch, 0, 0, false
	t.copying, t.cursor = true, 0
	t.f.audience.Add(1)
}

// page sends the next page of a copy and says how long it was; 0: not now.
func (t *telling) page(p *peer) int {
	var scratch [sourcePage]kvindex.Held
	size := t.f.source.Stats().BlockSize
	held, next := t.f.source.Page(t.cursor, sourcePage, scratch[:0])
	body := make([]byte, 0, 16*len(held))
	for i := range held {
		body = wire.AppendHeld(body, &held[i])
	}
	if !t.send(p, &wire.Part{Last: next == 0, BlockSize: size}, body) {
		return 0
	}
	t.cursor, t.copying = next, next != 0
	n := len(body) + 64
	t.pages, t.bytes = append(t.pages, pageSent{t.seq, n}), t.bytes+n
	return n
}
