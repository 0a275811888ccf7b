package cluster

import (
	"context"
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

// wantAgain is how long nothing may come of a stream that is wanted and not whole.
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
	if h.want || !h.copied && now-h.moved >= wantAgain {
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

// hears is what one peer offers.
type hears struct {
	box    mailbox
	offers map[wire.SourceID]*offer // guarded by index.mu
	held   []kvindex.Held           // scratch of who applies
}

const (
	// sourceInbox bounds what waits to be applied of sources, a peer.
	sourceInbox = 4 << 20
	// maxPeerOffers bounds what a peer may offer.
	maxPeerOffers = 1 << 14
)

// linkUp and linkDown follow the links of peers.
func (x *index) linkUp(p *peer) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(p)
	p.hears.box.empty()
	p.tells.begin(x.feeds)
	nudge(x.c.stir)
}

func (x *index) linkDown(p *peer) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	p.hears.box.empty()
	p.tells.end()
	x.forget(p)
}

// forget drops all that a peer has told.
func (x *index) forget(p *peer) {
	offers := p.hears.offers
	p.hears.offers = make(map[wire.SourceID]*offer)
	for _, o := range offers {
		x.withdraw(o)
	}
}

// hear takes one frame of a peer about sources: small ones at once, so that none is
// dropped; what is told is put before a worker.
func (x *index) hear(p *peer, kind byte, body []byte) {
	if x == nil {
		return
	}
	r := wire.NewReader(body)
	switch kind {
	case wire.KVOffer:
		x.hearOffer(p, &r)
	case wire.KVWant:
		x.hearWant(p, &r)
	case wire.KVAck:
		x.hearAck(p, &r)
	case wire.KVPart:
		if !p.hears.box.put(kind, body) {
			x.c.metrics.dropped.Inc()
			x.overrun(p)
		}
	}
	if r.Bad() {
		x.c.malformed(p, kind)
	}
}

// overrun asks for all that a peer tells once more: a frame of it was dropped.
func (x *index) overrun(p *peer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, o := range p.hears.offers {
		o.hearing.mu.Lock()
		if o.source != nil && !o.lost {
			o.lost, o.want = true, true
		}
		o.hearing.mu.Unlock()
	}
}

// work applies what a peer tells of its sources, until ctx ends.
func (x *index) work(ctx context.Context, p *peer) {
	for {
		for m, ok := p.hears.box.take(); ok; m, ok = p.hears.box.take() {
			if ctx.Err() != nil {
				return
			}
			x.apply(p, m)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.hears.box.wake:
		}
	}
}

func (x *index) apply(p *peer, m mail) {
	r := wire.NewReader(m.body)
	if x.hearPart(p, &r); r.Bad() {
		x.c.malformed(p, m.kind)
	}
}

func (x *index) hearOffer(p *peer, r *wire.Reader) {
	said := r.SourceOffer()
	if r.Bad() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	o := p.hears.offers[said.ID]
	switch {
	case said.Gone:
		if o != nil {
			delete(p.hears.offers, said.ID)
			x.withdraw(o)
		}
		return
	case p.connected() == nil || o == nil && len(p.hears.offers) >= maxPeerOffers:
		return
	case o == nil:
		o = &offer{place: x.place(said.ID), peer: p}
		p.hears.offers[said.ID] = o
		o.place.offers = append(o.place.offers, o)
	}
	x.hearSaid(o, &said)
}

// hearSaid takes what an offer says. The caller holds mu.
func (x *index) hearSaid(o *offer, said *wire.SourceOffer) {
	o.live, o.problem = said.Live, said.Problem
	if said.Model != "" {
		o.model = said.Model
	}
	x.reconsider(o.place)
}

func (x *index) hearPart(p *peer, r *wire.Reader) {
	part := r.Part()
	x.mu.Lock()
	o := p.hears.offers[part.ID]
	if o != nil && o != o.place.chosen {
		o.unwant = true
	}
	x.mu.Unlock()
	if o == nil || r.Bad() {
		return
	}
	if x.take(o, &part, func() bool { return x.put(o.source, p, r, part.BlockSize) }) {
		x.mu.Lock()
		o.showLive(o.live)
		x.mu.Unlock()
	}
}

// put applies the blocks of a part; false where they can't be read.
func (x *index) put(s *kvindex.Source, p *peer, r *wire.Reader, blockSize int) bool {
	for r.Rest() > 0 {
		held := p.hears.held[:0]
		for r.Rest() > 0 && len(held) < sourcePage {
			held = append(held, r.Held())
		}
		p.hears.held = held
		if r.Bad() {
			return false
		}
		s.Put(held, blockSize)
	}
	return !r.Bad()
}
