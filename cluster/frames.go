package cluster

import (
	"errors"
	"fmt"

	"kvca/cluster/link"
	"kvca/cluster/wire"
)

// handler is the cluster as its links see it. Calls for one link come from its
// reader, in order; what takes long goes to the peer's workers.
type handler struct{ c *Cluster }

// Check refuses who must not be linked with; membership refuses for the same
// reasons, this is for those that come without it.
func (h handler) Check(peer *link.Hello) error {
	own := h.c.hello()
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	want(peer.Node != own.Node, "both nodes are named %q: give each a name of its own", own.Node)
	want(peer.Cluster == own.Cluster, "cluster name %q here, %q at %s", own.Cluster, peer.Cluster, peer.Node)
	want(peer.KeyCheck == own.KeyCheck, "hash keys differ: check value %016x here, %016x at %s", own.KeyCheck, peer.KeyCheck, peer.Node)
	if p := h.c.peers.get(peer.Node); p != nil {
		l := p.connected()
		want(l == nil || l.Boot() == peer.Boot, "another node named %q is linked with %s: give each a name of its own", peer.Node, own.Node)
	}
	want(peer.BlockSize == own.BlockSize || h.c.cfg.MixedBlockSizes, "block size %d here, %d at %s", own.BlockSize, peer.BlockSize, peer.Node)
	return errors.Join(faults...)
}

// Up, Down and Frame are what the links tell. See linkUp, linkDown and frame.
func (h handler) Up(l *link.Peer) { h.c.linkUp(l) }

func (h handler) Down(l *link.Peer, _ error) { h.c.linkDown(l) }

func (h handler) Frame(l *link.Peer, kind byte, body []byte) { h.c.frame(l, kind, body) }

// linkUp begins a link: the peer is told all that it needs to go by.
func (c *Cluster) linkUp(l peerLink) {
	p := c.meet(l)
	if p == nil {
		l.Close(errors.New("too many nodes: no number is left for its reservations"))
		return
	}
	p.in.begin()
	p.pull.begin()
	p.inbox.empty()
	p.link.Store(&attached{l})
	c.linked.Add(1)
	c.revise()
	c.facts.tellAll(p)
	p.mu.Lock()
	p.told = true
	p.subtotals = true // all are told at the next tick, in order with the changes
	p.mu.Unlock()
	c.tellHeldSet(p, c.cfg.Now())
	p.quotaDue.Store(true)
	c.quotas.tellHeld(p, c.cfg.Now())
	c.fleetDue()
	c.index.linkUp(p)
	c.startWorkers(p)
}

// meet gives the peer of a new link, with its lease begun; nil where there is no
// room for it.
func (c *Cluster) meet(l peerLink) *peer {
	c.meeting.Lock()
	defer c.meeting.Unlock()
	p := c.peers.meet(l.Name())
	if p != nil {
		c.renew(p, l)
	}
	return p
}

// renew begins the peer's lease. Another run of its process holds nothing of what
// the one before did.
func (c *Cluster) renew(p *peer, l peerLink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boot != l.Boot() {
		if p.leased {
			c.cfg.Ledger.Drop(p.holder)
			c.quotas.drop(p)
		}
		p.boot = l.Boot()
	}
	p.leased, p.last = true, c.cfg.Now()
}

// linkDown ends a link. What the peer holds counts until its lease is over.
func (c *Cluster) linkDown(l peerLink) {
	p := c.peers.get(l.Name())
	if p == nil || !p.detach(l) {
		return
	}
	p.mu.Lock()
	p.last = c.cfg.Now() - l.Silence()
	p.mu.Unlock()
	c.linked.Add(-1)
	p.out.dirty.Store(true)
	p.calls.abandon()
	c.quotas.abandon(p)
	c.turns.gone(p)
	c.index.linkDown(p)
}

// frame takes one frame. Those that requests wait for are handled at once.
func (c *Cluster) frame(l peerLink, kind byte, body []byte) {
	p := c.peers.get(l.Name())
	if p == nil || p.connected() != l {
		return
	}
	r := wire.NewReader(body)
	switch kind {
	case wire.Reserve:
		c.decide(p, l, &r)
	case wire.Granted, wire.Refused:
		p.patience.answered()
		p.calls.deliver(kind == wire.Granted, &r)
	case wire.Changes:
		c.change(p, &r)
	case wire.HeldSet:
		c.heldSet(p, &r)
	case wire.Subtotals:
		c.hearSubtotals(p, &r)
	case wire.Ages:
		c.hearAges(p, &r)
	case wire.Ack:
		c.acked(p, &r)
	case wire.PageAck:
		p.credits.hear(&r)
	case wire.Digest:
		c.put(p, &p.questions, kind, body)
	case wire.Delta:
		if len(body) <= smallDelta && p.inbox.idle() {
			c.applyDelta(p, &r, &p.run)
			return
		}
		c.put(p, &p.inbox, kind, body)
	case wire.Page, wire.PageEnd, wire.Roster, wire.Facts:
		c.put(p, &p.inbox, kind, body)
	case wire.QuotaAsk:
		c.quotas.hearAsk(p, l, &r)
	case wire.QuotaGrant:
		c.quotas.hearGrant(p, &r)
	case wire.QuotaHeld:
		c.quotas.hearHeld(p, &r)
	case wire.Turn:
		c.turns.hear(p, &r)
	case wire.KVOffer, wire.KVWant, wire.KVPart, wire.KVAck:
		c.index.hear(p, kind, body)
	default:
		c.metrics.malformed.WithLabelValues("unknown_kind").Inc()
	}
}

// put hands a frame to a worker. What does not fit is found missing by a
// comparison, which is begun when there is room again.
func (c *Cluster) put(p *peer, m *mailbox, kind byte, body []byte) {
	if !m.put(kind, body) {
		c.metrics.dropped.Inc()
		p.pull.want()
	}
}

// malformed counts a frame that can't be read, or has a part that can't, and says so once
// a peer.
func (c *Cluster) malformed(p *peer, kind byte) {
	c.metrics.malformed.WithLabelValues("malformed").Inc()
	if !p.complained.Swap(true) {
		c.log.Warn("a peer's frame can't be read, or a part of it: that is skipped, as are others like it", "peer", p.name, "kind", kind)
	}
}
