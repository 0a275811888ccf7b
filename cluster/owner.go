package cluster

import (
	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/ledger"
)

// maxFigures is how many fresh figures an answer carries.
const maxFigures = 16

// decide answers a Reserve frame: the owner's part. It runs on the link's reader,
// and takes as long as one pass over the candidates.
func (c *Cluster) decide(p *peer, l peerLink, r *wire.Reader) {
	ask, n := r.Ask()
	p.order = ledger.Order{
		ID: ask.ID, Candidates: p.order.Candidates[:0], ActiveBytes: ask.ActiveBytes,
		LoadScale: ask.LoadScale, ByRequests: ask.ByRequests, Tie: ask.Tie,
	}
	p.keys = p.keys[:0]
	v, now := c.view.Load(), c.cfg.Now()
	for range n {
		o := r.Offer()
		e := c.backends.of(o.Key)
		if e == nil || !c.answersFor(v, e, now) {
			continue
		}
		p.order.Candidates = append(p.order.Candidates, ledger.Candidate{
			Slot: e.slot, Cost: o.Cost, Slowness: o.Slowness, Bypass: o.Bypass, Novel: o.Novel,
		})
		p.keys = append(p.keys, e)
	}
	if r.Bad() {
		c.malformed(p, wire.Reserve)
		return
	}
	kind, answer := c.judge(p, &ask)
	c.answer(p, l, kind, &answer)
}

// judge reserves among the candidates in the peer's scratch.
func (c *Cluster) judge(p *peer, ask *wire.Ask) (kind byte, a wire.Answer) {
	a.ID = ask.ID
	if len(p.order.Candidates) == 0 {
		a.Refusal = wire.NotOwner
		return wire.Refused, a
	}
	g, ok := c.cfg.Ledger.ReserveFor(p.holder, &p.order, ask.Bound)
	a.Key, a.Score = p.keys[g.Index].key, g.Score
	switch {
	case !ok:
		a.Refusal = wire.AboveBound
		return wire.Refused, a
	case !g.Booked:
		a.Refusal = wire.Released
		return wire.Refused, a
	}
	return wire.Granted, a
}

func (c *Cluster) answer(p *peer, l peerLink, kind byte, a *wire.Answer) {
	n := min(len(p.keys), maxFigures)
	b := wire.AppendAnswer(p.reply[:0], a, n)
	for _, e := range p.keys[:n] {
		b = wire.AppendFigure(b, &wire.Figure{Key: e.key, Load: c.cfg.Ledger.Others(p.holder, e.slot)})
	}
	p.reply = b
	if l.Send(link.Urgent, kind, b) {
		c.metrics.answers.WithLabelValues(answerNames[kind]).Inc()
	}
}

var answerNames = map[byte]string{wire.Granted: "granted", wire.Refused: "refused"}

// change takes a Changes frame: what became of a peer's reservations here.
func (c *Cluster) change(p *peer, r *wire.Reader) {
	for r.Rest() > 0 {
		op, h := r.Change()
		if r.Bad() {
			c.malformed(p, wire.Changes)
			return
		}
		switch op {
		case wire.OpPrefilled:
			c.cfg.Ledger.PrefilledFor(p.holder, h.ID)
		case wire.OpReleased:
			c.cfg.Ledger.ReleaseFor(p.holder, h.ID)
		case wire.OpHeld:
			if e := c.backends.of(h.Key); e != nil {
				c.cfg.Ledger.Adopt(p.holder, held(e, &h))
			}
		}
	}
}

func held(e *entry, h *wire.Hold) ledger.Held {
	return ledger.Held{ID: h.ID, Slot: e.slot, Novel: h.Novel, Prefilled: h.Prefilled}
}

// heldSet takes a part of all that a peer holds here; the last part puts the set
// in the place of what was believed.
func (c *Cluster) heldSet(p *peer, r *wire.Reader) {
	flags, n := r.HeldSet()
	p.mu.Lock()
	if flags&wire.FirstPart != 0 {
		p.held = p.held[:0]
	}
	for range n {
		h := r.Hold()
		if e := c.backends.of(h.Key); e != nil && len(p.held) < ledger.MaxHeld {
			p.held = append(p.held, held(e, &h))
		}
	}
	set := p.held
	p.mu.Unlock()
	pending := r.IDs(nil)
	if r.Bad() {
		c.malformed(p, wire.HeldSet)
		return
	}
	if flags&wire.LastPart != 0 {
		c.cfg.Ledger.Replace(p.holder, set, pending)
	}
}
