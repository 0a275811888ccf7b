package cluster

import (
	"context"

	"kvca/cluster/wire"
	"kvca/state/kvindex"
)

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
