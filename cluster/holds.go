package cluster

import (
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state"
	"kvca/state/ledger"
)

// How this node tells owners what it holds: changes with other news, and the full
// set at every link, after every change of owners, and
// every heldEvery. A change that is lost costs balance until the next set.
const (
	heldEvery = 2 * time.Second
	// heldPart is how many holds one frame has: under 16 KiB, so that nobody's
	// reservation waits behind it.
	heldPart = 500
)

func (c *Cluster) tellHeld(v *view, h ledger.Held) {
	if p, e := v.peer(h.Slot), c.backends.at(h.Slot); p != nil && e != nil {
		c.tellChange(p, wire.OpHeld, &wire.Hold{ID: h.ID, Key: e.key, Novel: h.Novel, Prefilled: h.Prefilled})
	}
}

func (c *Cluster) tellPrefilled(s state.Slot, id ledger.ID) {
	if p := c.view.Load().peer(s); p != nil {
		c.tellChange(p, wire.OpPrefilled, &wire.Hold{ID: id})
	}
}

func (c *Cluster) tellReleased(s state.Slot, id ledger.ID) {
	if p := c.view.Load().peer(s); p != nil {
		c.tellChange(p, wire.OpReleased, &wire.Hold{ID: id})
	}
}

func (c *Cluster) tellChange(p *peer, op wire.Op, h *wire.Hold) {
	if p.changes.add(op, h) {
		p.changes.tell(p)
	}
}

// reassert has the full sets told soon, at slightly different times on different
// nodes: the owners have changed.
func (c *Cluster) reassert(v *view, now time.Duration) {
	for _, p := range v.peers {
		if p != nil {
			p.mu.Lock()
			p.heldDue = now + time.Duration(c.cfg.Rand()%uint64(reassertJitter))
			p.told = true // whatever was told before, an empty set is news
			p.quotaDue.Store(true)
			p.mu.Unlock()
		}
	}
}

const reassertJitter = 100 * time.Millisecond

// tellHeldSet tells an owner everything that is held there. No reservation can be
// asked for meanwhile, or the owner could take it for given back.
func (c *Cluster) tellHeldSet(p *peer, now time.Duration) {
	v := c.view.Load()
	p.changes.tell(p)
	p.calls.mu.Lock()
	defer p.calls.mu.Unlock()
	pending := make([]ledger.ID, 0, len(p.calls.waiting))
	for id := range p.calls.waiting {
		pending = append(pending, id)
	}
	holds := c.cfg.Ledger.Holds(ledger.Self, nil, func(s state.Slot) bool { return v.peer(s) == p })
	p.mu.Lock()
	p.heldDue = now + heldEvery
	nothing := len(holds) == 0 && !p.told
	p.told = len(holds) > 0
	p.mu.Unlock()
	if !nothing {
		c.sendHeldSet(p, holds, pending)
	}
}

func (c *Cluster) sendHeldSet(p *peer, holds []ledger.Held, pending []ledger.ID) {
	flags := byte(wire.FirstPart)
	for {
		n := min(len(holds), heldPart)
		if n == len(holds) {
			flags |= wire.LastPart
		}
		b := wire.AppendHeldSet(nil, flags, n)
		for _, h := range holds[:n] {
			key := uint64(0)
			if e := c.backends.at(h.Slot); e != nil {
				key = e.key
			}
			b = wire.AppendHold(b, &wire.Hold{ID: h.ID, Key: key, Novel: h.Novel, Prefilled: h.Prefilled})
		}
		if n == len(holds) {
			b = wire.AppendIDs(b, pending)
			p.send(link.Urgent, wire.HeldSet, b)
			return
		}
		p.send(link.Urgent, wire.HeldSet, wire.AppendIDs(b, nil))
		holds, flags = holds[n:], 0
	}
}
