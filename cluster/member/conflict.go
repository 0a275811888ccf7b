package member

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// names tracks one name at two addresses. A node that crashed and returned elsewhere
// is in conflict with its own past until that is known dead, some ten seconds; two live nodes are for longer.
type names struct {
	since map[[2]string]sighting // by name and the address that came second
	// displaced is when others last held this node's name for another address.
	displaced time.Time
}

type sighting struct {
	first, last time.Time
	told        bool
}

const (
	conflictAfter = 12 * time.Second // a crashed node's past is dead and reclaimed by then
	conflictGap   = 30 * time.Second // without a sighting, that ends it
	maxConflicts  = 256
)

// seen notes a conflict and tells whether it has become one of two live nodes.
func (c *names) seen(name, other string, now time.Time) bool {
	key := [2]string{name, other}
	s, ok := c.since[key]
	if !ok || now.Sub(s.last) > conflictGap {
		s = sighting{first: now}
	}
	if c.since == nil || !ok && len(c.since) >= maxConflicts {
		c.since = map[[2]string]sighting{}
	}
	s.last = now
	tell := !s.told && now.Sub(s.first) >= conflictAfter
	s.told = s.told || tell
	c.since[key] = s
	return tell
}

// conflict hears that a name which is held for one address is claimed at another.
func (m *Members) conflict(name, held, claimed string) {
	now := time.Now()
	m.mu.Lock()
	tell := m.names.seen(name, claimed, now)
	m.mu.Unlock()
	if tell {
		m.metrics.conflicts.Inc()
		m.later(func() {
			m.log.Error("two live nodes have one name: rename one", "node", name, "address", held, "other", claimed)
		})
	}
}

// seenAt notes where another node holds this one's name. As long as that is
// elsewhere, the joiner goes on introducing itself.
func (m *Members) seenAt(at string, s memberlist.NodeStateType) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at == m.self || s == memberlist.StateLeft {
		m.names.displaced = time.Time{}
		return
	}
	m.names.displaced = time.Now()
	m.signal(m.hurry)
}
