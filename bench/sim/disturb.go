package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Disturbance is something that happens to a node or a backend at a time.
type Disturbance struct {
	At   time.Duration
	Kind Kind
	// Target is the number of the node or backend, from 0.
	Target int
	// Down is how long a restarted backend refuses connections.
	Down time.Duration
}

// Kind is what happens.
type Kind int

const (
	// RestartBackend: its requests break, it refuses connections for Down, and
	// comes back with an empty cache.
	RestartBackend Kind = iota + 1
	// RemoveBackend: gateways forget it; what runs on it goes on.
	RemoveBackend
	// AddBackend: gateways learn of one that was removed, as a new one. A backend
	// whose first disturbance this is does not exist before.
	AddBackend
	// KillNode: its connections break, and it refuses new ones.
	KillNode
	// StartNode: a killed one is back, and knows nothing.
	StartNode
)

var kindNames = [...]string{"", "restart backend", "remove backend", "add backend", "kill node", "start node"}

// String is the kind's name in messages.
func (k Kind) String() string {
	if k < RestartBackend || k > StartNode {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

func (k Kind) ofNode() bool { return k == KillNode || k == StartNode }

// latest bounds when something happens, and how long it lasts.
const latest = 10_000 * time.Hour

func (d *Disturbance) check(nodes, backends int) error {
	most := backends
	if d.Kind.ofNode() {
		most = nodes
	}
	switch {
	case d.Kind < RestartBackend || d.Kind > StartNode:
		return fmt.Errorf("%v: want one of the kinds", d.Kind)
	case d.Target < 0 || d.Target >= most:
		return fmt.Errorf("%v %d: want 0 to %d", d.Kind, d.Target, most-1)
	case d.At < 0 || d.Down < 0 || d.At > latest || d.Down > latest:
		return fmt.Errorf("%v at %v, down for %v: want 0s to %v", d.Kind, d.At, d.Down, latest)
	}
	return nil
}

// disturb enters the disturbances. Backends that are only added later are
// taken out before anything begins.
func (s *simulation) disturb() {
	seen := make(map[int]bool)
	inOrder := func(a, b Disturbance) int { return cmp.Compare(a.At, b.At) }
	for _, d := range slices.SortedStableFunc(slices.Values(s.cfg.Disturb), inOrder) {
		if d.Kind == AddBackend && !seen[d.Target] {
			s.remove(d.Target)
		}
		if !d.Kind.ofNode() {
			seen[d.Target] = true
		}
		s.loop.at(d.At, func() { s.happen(d) })
	}
}

func (s *simulation) happen(d Disturbance) {
	switch d.Kind {
	case RestartBackend:
		s.restart(d.Target, d.Down)
	case RemoveBackend:
		s.remove(d.Target)
	case AddBackend:
		s.add(d.Target)
	case KillNode:
		s.kill(d.Target)
	case StartNode:
		s.start(d.Target)
	}
}

// remove takes a backend out of the configuration, if it is there.
func (s *simulation) remove(backend int) {
	if v := s.engines.servers[backend]; v.listed {
		v.listed = false
		s.gate.removed(backend)
	}
}

// add puts it in again.
func (s *simulation) add(backend int) {
	v := s.engines.servers[backend]
	if v.listed {
		return
	}
	v.listed = true
	s.gate.added(backend)
	if !v.up {
		s.gate.lost(backend)
	}
}

// restart stops a backend that is up and starts it again. The gateways notice one
// hop later that it is down, by their connections, and at once that it is back.
func (s *simulation) restart(backend int, down time.Duration) {
	v := s.engines.servers[backend]
	if !v.up {
		return
	}
	broken := s.engines.stop(backend)
	s.loop.after(hop, func() {
		if v.listed {
			s.gate.lost(backend)
		}
	})
	for _, j := range broken {
		s.later(j, hop, func() { s.broken(j) })
	}
	s.loop.after(max(down, hop), func() {
		s.engines.start(backend)
		if v.listed {
			s.gate.back(backend)
		}
	})
}

// kill stops a node: clients see their connections break, engines theirs.
func (s *simulation) kill(node int) {
	if !s.clients.up[node] {
		return
	}
	s.clients.up[node] = false
	s.gate.killed(node)
	for _, j := range s.clients.at(node) {
		s.orphaned(j)
	}
}

// start starts a killed node again; clients may ask it when it is ready.
func (s *simulation) start(node int) {
	if s.clients.up[node] || s.starting[node] {
		return
	}
	s.starting[node] = true
	s.gate.started(node, func() {
		s.clients.up[node], s.starting[node] = true, false
	})
}
