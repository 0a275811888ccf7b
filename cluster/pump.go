package cluster

import (
	"context"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
)

// News gathers before it is told: what was learned, what became of reservations,
// and subtotals go together, in one write a peer. Each write wakes a process, which
// costs more than anything else here; waiting longer would make others decide by
// older figures.
//
// linger is how long news waits at least: the beginning and the end of an answer
// are often one moment.
const linger = time.Millisecond

// pump tells the peers what is new, until ctx ends. It rests while nothing is.
func (c *Cluster) pump(ctx context.Context) {
	pause := time.NewTimer(c.cfg.NewsEvery)
	defer pause.Stop()
	for told := c.cfg.Now(); ; told = c.cfg.Now() {
		select {
		case <-ctx.Done():
			return
		case <-c.stir:
		}
		pause.Reset(max(told+c.cfg.NewsEvery-c.cfg.Now(), linger))
		select {
		case <-ctx.Done():
			return
		case <-c.outbox.full:
		case <-pause.C:
		}
		c.tellNews()
	}
}

// tellNews tells each peer what is new for it.
func (c *Cluster) tellNews() {
	behind := c.turns.take() // before the loads that it is about
	batch, since, lost := c.outbox.take()
	subtotals := c.newSubtotals()
	sources, turn := c.index.takeNews(), copyTurn
	for _, p := range c.peers.all() {
		if lost {
			p.out.dirty.Store(true)
		}
		if l := p.connected(); l != nil {
			l.Hold()
			p.changes.tell(p)
			c.tellSubtotals(p, subtotals)
			for _, frame := range behind[p] {
				p.send(link.Urgent, wire.Turn, frame)
			}
			if len(batch) > 0 && c.shares(l) {
				c.sendDelta(p, l, batch, since)
			}
			c.acknowledge(p)
			if c.index != nil {
				c.index.tellSources(p, sources, &turn)
			}
			l.Flush()
		}
	}
	if turn <= 0 {
		nudge(c.stir)
	}
}

// tellSubtotals tells a peer what has changed of this node's own holds, or all of
// them where it is new or has missed some.
func (c *Cluster) tellSubtotals(p *peer, news []byte) {
	p.mu.Lock()
	all := p.subtotals
	p.mu.Unlock()
	if all {
		news = c.encodeSubtotals(c.cfg.Ledger.Subtotals(nil), true)
	}
	if news == nil {
		return
	}
	taken := p.send(link.Urgent, wire.Subtotals, news)
	p.mu.Lock()
	p.subtotals = !taken
	p.mu.Unlock()
}
