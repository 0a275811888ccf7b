package cluster

import (
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/ledger"
)

// agesEvery is the time between two frames of ages.
const agesEvery = time.Second

// newSubtotals is a Subtotals frame with what has changed since the last one, nil
// for nothing. It belongs to pump.
func (c *Cluster) newSubtotals() []byte {
	c.changedSubtotals = c.cfg.Ledger.Changes(c.changedSubtotals[:0])
	if len(c.changedSubtotals) == 0 {
		return nil
	}
	return c.encodeSubtotals(c.changedSubtotals, false)
}

func (c *Cluster) encodeSubtotals(list []ledger.Subtotal, complete bool) []byte {
	figures := make([]wire.Figure, 0, len(list))
	for _, s := range list {
		if e := c.backends.at(s.Slot); e != nil {
			figures = append(figures, wire.Figure{Key: e.key, Load: s.Load})
		}
	}
	b := wire.AppendSubtotals(nil, complete, len(figures))
	for i := range figures {
		b = wire.AppendFigure(b, &figures[i])
	}
	return b
}

// retell has all subtotals told to a peer with the next news, and what is held
// there even if that is nothing.
func (c *Cluster) retell(p *peer) {
	p.mu.Lock()
	p.subtotals, p.told = true, true
	p.mu.Unlock()
	nudge(c.stir)
}

// hearSubtotals takes what a peer holds.
func (c *Cluster) hearSubtotals(p *peer, r *wire.Reader) {
	complete, n := r.Subtotals()
	if complete {
		for _, e := range c.backends.all() {
			c.cfg.Ledger.Tell(p.holder, e.slot, ledger.Load{})
		}
	}
	for range n {
		f := r.Figure()
		if e := c.backends.of(f.Key); e != nil && !r.Bad() {
			c.cfg.Ledger.Tell(p.holder, e.slot, f.Load)
		}
	}
	if r.Bad() {
		c.malformed(p, wire.Subtotals)
	}
}

// tellAges tells everyone how old the oldest locations are in the full mirrors of
// the backends that this node owns: what is older is old everywhere.
func (c *Cluster) tellAges(now time.Duration) {
	v := c.view.Load()
	var b []byte
	for _, e := range c.backends.all() {
		if v.owner(e.slot) != v.self {
			continue
		}
		age := uint64(0)
		if idle, full := c.cfg.Map.Age(e.slot, now); full {
			age = uint64(idle.Milliseconds()) + 1
		}
		if was := e.age.Swap(age); was != age {
			b = wire.AppendAge(b, e.key, age)
		}
	}
	if len(b) == 0 {
		return
	}
	for _, p := range c.peers.all() {
		p.send(link.Deltas, wire.Ages, b)
	}
}

func (c *Cluster) hearAges(p *peer, r *wire.Reader) {
	v := c.view.Load()
	for r.Rest() > 0 {
		key, age := r.Age()
		if r.Bad() {
			c.malformed(p, wire.Ages)
			return
		}
		if e := c.backends.of(key); e != nil && v.peer(e.slot) == p {
			e.age.Store(age)
		}
	}
}
