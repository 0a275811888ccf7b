package member

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// arrived records a live node.
func (m *Members) arrived(n *memberlist.Node, what string) {
	meta, err := decodeMeta(n.Meta)
	if err != nil && n.Name != m.config.Name {
		return // NotifyAlive lets none in
	}
	at := address(n)
	m.mu.Lock()
	m.roster.joined(Member{Name: n.Name, Address: at, Meta: meta}, time.Now())
	m.mu.Unlock()
	m.signal(m.wake)
	if name := n.Name; name != m.config.Name {
		m.signal(m.hurry)
		m.later(func() {
			m.endsTold(func(other string, _ end) bool { return other == name })
			m.log.Info(what, "node", name, "address", at, "boot", meta.Boot)
		})
	}
}

// ended records a node that left, if it said farewell, or died.
func (m *Members) ended(n *memberlist.Node) {
	name, at := n.Name, address(n)
	meta, _ := decodeMeta(n.Meta)
	state, what := Dead, "member lost"
	m.mu.Lock()
	if f, ok := m.table.Get(departure, name); name == m.config.Name || ok && f.Value == meta.Boot {
		state, what = Left, "member left"
	}
	m.roster.gone(name, state, time.Now())
	m.mu.Unlock()
	m.signal(m.wake)
	m.signal(m.hurry)
	if name == m.config.Name {
		return
	}
	told := func() { m.log.Info(what, "node", name, "address", at, "boot", meta.Boot) }
	if state == Left {
		m.later(told)
		return
	}
	m.later(func() { m.ends[name] = end{time.Now(), told} })
}

// end is a member's that may still turn out to be a departure: the farewell often
// comes a moment after the news.
type end struct {
	at   time.Time
	told func() // logs that it was lost
}

// endsTold logs the ends of those who did not say farewell, or of one of them.
func (m *Members) endsTold(due func(name string, e end) bool) {
	for name, e := range m.ends {
		if due(name, e) {
			delete(m.ends, name)
			e.told()
		}
	}
}

// doubt marks a member suspect or takes that back.
func (m *Members) doubt(name string, suspect bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roster.doubt(name, suspect, time.Now())
}

// judge decides whether a node is let in; a refusal is counted and logged.
func (m *Members) judge(n *memberlist.Node) *refusal {
	_, r := admitRaw(&m.config.Meta, n.Name, n.Meta)
	if r == nil {
		m.mu.Lock()
		if !m.roster.room(n.Name) {
			r = &refusal{n.Name, noRoom, "the cluster has its most members"}
		}
		m.mu.Unlock()
	}
	if r != nil {
		m.refuse(r, address(n))
	}
	return r
}

// refuse counts a refusal and logs it once per peer, reason and values.
func (m *Members) refuse(r *refusal, at string) {
	m.metrics.refused.WithLabelValues(string(r.reason)).Inc()
	if m.said.first(r.peer+"\x00"+r.text, time.Now()) {
		m.later(func() {
			m.log.Warn("node refused", "node", r.peer, "address", at, "reason", string(r.reason), "text", r.text)
		})
	}
}

// later has the run loop do what must not be done under memberlist's lock. It drops
// beyond maxNotes: these are log lines.
func (m *Members) later(f func()) {
	select {
	case m.notes <- f:
	default:
	}
}

func (m *Members) signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// What the gate sees.

func (m *Members) foreign(label, from string) {
	m.refuse(&refusal{hostOf(from), otherCluster, foreignText(label, m.config.Cluster)}, from)
}

func (m *Members) nonsense(transport string) {
	m.metrics.malformed.WithLabelValues(transport).Inc()
}

func (m *Members) tooMany() { m.metrics.busy.Inc() }

func (m *Members) refusedBy(at, answer string) {
	m.refuse(&refusal{at, otherCluster, "it says: " + answer}, at)
}

// unread refuses gossip that can't be read.
func (m *Members) unread(from, text string) {
	m.refuse(&refusal{hostOf(from), otherGossipKey, text}, from)
}

// gossiped is what only memberlist's log tells; name is a node's, or where it came from.
func (m *Members) gossiped(e event, name string) {
	switch e {
	case suspected:
		m.doubt(name, true)
	case undecrypted:
		m.unread(name, "none of this node's keys opens its gossip: want the same --cluster-secret-file; each logs what it has as \"cluster secret\"")
	case inClear:
		m.unread(name, "its gossip is not encrypted, and this node has a secret: want --cluster-secret-file there too")
	case noKey:
		m.unread(name, "its gossip is encrypted, and this node has no secret: want --cluster-secret-file here too")
	case badPacket:
		m.nonsense("packet")
	case badStream:
		m.nonsense("stream")
	case queueFull:
		m.metrics.queueFull.Inc()
	case tcpOnly:
		m.metrics.tcpOnly.Inc()
	}
}
