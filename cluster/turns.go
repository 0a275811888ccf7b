package cluster

import (
	"sync"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/ring"
	"kvca/state/turn"
)

// Queue is what waits for room in pools, as the cluster sees it. Hear is called from the
// readers of links.
type Queue interface {
	// Hear takes what a node says.
	Hear(node string, m *turn.Message)
	// Gone is told of a node whose link is down.
	Gone(node string)
}

// maxBehind bounds what waits to be told behind the next loads, a peer.
const maxBehind = 4096

// Turns carries what nodes say of those who wait for room. Each pool has an owner, as
// a backend has, which calls for it.
type Turns struct {
	c *Cluster

	mu     sync.Mutex
	behind map[*peer][][]byte // what is told behind the next loads
}

// Turns is how this node's queue speaks with those of the others.
func (c *Cluster) Turns() *Turns { return c.turns }

// Caller is the node that calls for a pool, empty for this one, or where the link with
// that node is down.
func (t *Turns) Caller(pool string) string {
	v := t.c.view.Load()
	if v.alone() {
		return ""
	}
	p := v.peers[v.ring.Index(ring.Key("pool "+pool))]
	if p == nil || p.connected() == nil {
		return ""
	}
	return p.name
}

// Tell sends a message; false where the node can't be reached, or a name is too long.
// What is told of requests that have begun or ended goes behind the loads that show
// it, in at most NewsEvery and a moment.
func (t *Turns) Tell(node string, m *turn.Message) bool {
	p := t.c.peers.get(node)
	if p == nil || len(m.Pool) > turn.MaxName || len(m.Tenant) > turn.MaxName {
		return false
	}
	frame := wire.AppendTurn(nil, m)
	if m.Op != turn.Booked && m.Op != turn.Freed {
		return p.send(link.Urgent, wire.Turn, frame)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.connected() == nil || len(t.behind[p]) >= maxBehind {
		return false
	}
	t.behind[p] = append(t.behind[p], frame)
	nudge(t.c.stir)
	return true
}

// TellAll sends a message to all nodes.
func (t *Turns) TellAll(m *turn.Message) {
	frame := wire.AppendTurn(nil, m)
	for _, p := range t.c.peers.all() {
		p.send(link.Urgent, wire.Turn, frame)
	}
}

// take is what is to be told behind the loads that are gathered from now on.
func (t *Turns) take() map[*peer][][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	behind := t.behind
	t.behind = make(map[*peer][][]byte, len(behind))
	return behind
}

func (t *Turns) hear(p *peer, r *wire.Reader) {
	m := r.Turn()
	if r.Bad() {
		t.c.malformed(p, wire.Turn)
		return
	}
	if q := t.c.cfg.Queue; q != nil {
		q.Hear(p.name, &m)
	}
}

func (t *Turns) gone(p *peer) {
	if q := t.c.cfg.Queue; q != nil {
		q.Gone(p.name)
	}
}
