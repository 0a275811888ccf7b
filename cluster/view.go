package cluster

import (
	"slices"
	"strings"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state"
	"kvca/state/ledger"
	"kvca/state/ring"
)

// view is who owns what, as this node sees it. A view never changes: another
// takes its place.
type view struct {
	ring *ring.Ring
	// names are the live nodes, sorted; self is this node's place among them.
	names []string
	self  int
	// peers stand at the places of their names, nil at self.
	peers []*peer
	// ownerOf is the place of a slot's owner.
	ownerOf []uint8
	// term numbers the sets of names that this node has seen, since is when this one
	// came, and sum tells sets apart on all nodes.
	term  uint64
	since time.Duration
	sum   uint64
}

// alone is whether there is nobody to ask.
func (v *view) alone() bool { return len(v.names) == 1 }

// owner is the place of the owner of slot s.
func (v *view) owner(s state.Slot) int {
	if int(s) < len(v.ownerOf) {
		return int(v.ownerOf[s])
	}
	return v.self
}

// peer is who owns slot s, nil for this node.
func (v *view) peer(s state.Slot) *peer { return v.peers[v.owner(s)] }

// settle is for how long a new owner goes by what others tell of their loads, and
// a former one answers late questions: one lease.
const settle = lease

// revise makes a new view after members or backends have changed, gives this
// node's backends their roles, and has the held sets told anew where owners
// have changed.
func (c *Cluster) revise() {
	c.viewMu.Lock()
	defer c.viewMu.Unlock()
	old := c.view.Load()
	v := &view{ring: ring.New(c.liveNames())}
	v.names = v.ring.Names()
	v.self = slices.Index(v.names, c.cfg.Node)
	v.peers = make([]*peer, len(v.names))
	for i, name := range v.names {
		if i != v.self {
			v.peers[i] = c.peers.get(name)
		}
	}
	now := c.cfg.Now()
	v.date(old, now)
	for _, e := range c.backends.all() {
		for int(e.slot) >= len(v.ownerOf) {
			v.ownerOf = append(v.ownerOf, uint8(v.self))
		}
		place := v.ring.Index(e.key)
		v.ownerOf[e.slot] = uint8(place)
		c.assume(e, place == v.self, now)
	}
	c.view.Store(v)
	c.metrics.owned.Set(float64(c.countOwned(v)))
	if old == nil || !slices.Equal(old.names, v.names) {
		c.reassert(v, now)
	}
}

// date says since when the view has these names.
func (v *view) date(old *view, now time.Duration) {
	if old != nil && slices.Equal(old.names, v.names) {
		v.term, v.since, v.sum = old.term, old.since, old.sum
		return
	}
	v.term, v.since, v.sum = 1, now, ring.Key(strings.Join(v.names, "\x00"))
	if old != nil {
		v.term = old.term + 1
	}
}

// assume gives this node its role for a backend. The caller holds viewMu.
func (c *Cluster) assume(e *entry, own bool, now time.Duration) {
	role := e.role
	switch {
	case own && role == ledger.Follower:
		role, e.until = ledger.Learning, now+settle
	case !own && role != ledger.Follower:
		role, e.until = ledger.Follower, now+settle
	}
	if role != e.role {
		e.role = role
		c.cfg.Ledger.SetRole(e.slot, role)
	}
}

// mature ends the learning of owners whose time has come.
func (c *Cluster) mature(now time.Duration) {
	c.viewMu.Lock()
	defer c.viewMu.Unlock()
	for _, e := range c.backends.all() {
		if e.role == ledger.Learning && now >= e.until {
			e.role = ledger.Owner
			c.cfg.Ledger.SetRole(e.slot, ledger.Owner)
		}
	}
}

// answersFor is whether this node decides about a backend: it owns it, or did so
// a moment ago and the asker may not have heard.
func (c *Cluster) answersFor(v *view, e *entry, now time.Duration) bool {
	if v.owner(e.slot) == v.self {
		return true
	}
	c.viewMu.Lock()
	defer c.viewMu.Unlock()
	return e.role != ledger.Follower || now < e.until
}

func (c *Cluster) countOwned(v *view) (n int) {
	for _, e := range c.backends.all() {
		if v.owner(e.slot) == v.self {
			n++
		}
	}
	return n
}

// Open tells the cluster that a slot is a backend's from now on. It comes after
// the router has taken the slot, and before the backend is chosen.
func (c *Cluster) Open(s state.Slot, id string) {
	e := c.backends.open(s, id)
	if e == nil {
		c.log.Error("backend is not shared with the cluster: another one has its key; rename it", "backend", id)
		return
	}
	e.generation.Store(c.facts.generation(id))
	c.revise()
	c.fleetDue()
	c.index.opened(e.key)
	for _, p := range c.peers.all() {
		p.pull.want() // what peers told of it was dropped
	}
}

// Close tells the cluster that the backend in slot s is gone. It comes before the
// router gives the slot back.
func (c *Cluster) Close(s state.Slot) {
	e := c.backends.at(s)
	if e != nil {
		// What is told of the slot from here on is told of another backend.
		none := wire.AppendFigure(wire.AppendSubtotals(nil, false, 1), &wire.Figure{Key: e.key})
		for _, p := range c.peers.all() {
			p.send(link.Urgent, wire.Subtotals, none)
		}
	}
	c.backends.close(s)
	if e != nil {
		c.index.closed(e.key)
	}
	c.cfg.Ledger.SetRole(s, ledger.Owner)
	c.revise()
	c.fleetDue()
}
