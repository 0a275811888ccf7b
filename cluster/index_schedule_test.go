package cluster

import (
	"fmt"
	"testing"
	"time"

	"kvca/state"
	"kvca/state/kvindex"
	"kvca/state/virtualtime"
)

func slotOf(i int) state.Slot { return state.Slot(i) }

// tale is one story of sources on a field: who reads what, and what engines do.
type tale struct {
	*field
	backends int
	engines  []*truth
	feeds    map[*truth]map[*fieldNode]*Feed
	happened []string
}

func (s *tale) note(format string, args ...any) {
	s.happened = append(s.happened, fmt.Sprintf(format, args...))
}

func newTale(t *testing.T, seed uint64) *tale {
	s := &tale{backends: 3, feeds: make(map[*truth]map[*fieldNode]*Feed)}
	s.field = newField(t, seed, 2+int(seed%3), s.backends)
	for b := range s.backends {
		for rank := range 1 + b%2 {
			e := &truth{backend: backendID(b), rank: rank, runs: make(map[uint64]*kvindex.Stored)}
			s.engines = append(s.engines, e)
			s.feeds[e] = make(map[*fieldNode]*Feed)
		}
	}
	return s
}

// read has a node read an engine, or no longer.
func (s *tale) read(n *fieldNode, e *truth) {
	if f := s.feeds[e][n]; f != nil {
		s.note("%s reads %s/%d no more", n.name, e.backend, e.rank)
		f.Close()
		delete(s.feeds[e], n)
		return
	}
	if n.backends.of(e.id().Key) == nil {
		return
	}
	f, err := n.Feed(e.backend, e.rank, "m")
	if err != nil {
		s.t.Fatal(err)
	}
	s.note("%s reads %s/%d", n.name, e.backend, e.rank)
	e.fill(f)
	s.feeds[e][n] = f
}

func (s *tale) feedsOf(e *truth) (list []*Feed) {
	for _, n := range s.nodes {
		if f := s.feeds[e][n]; f != nil {
			list = append(list, f)
		}
	}
	return list
}

// closeBackend takes a backend away from a node, or gives it back in another slot.
func (s *tale) closeBackend(n *fieldNode, b int) {
	if e := n.backends.of((&truth{backend: backendID(b)}).id().Key); e != nil {
		s.note("%s loses %s", n.name, e.id)
		n.Stepped.Close(e.slot)
		for _, engine := range s.engines {
			if engine.backend == e.id {
				delete(s.feeds[engine], n)
			}
		}
		return
	}
	used := make(map[state.Slot]bool)
	for _, e := range n.backends.all() {
		used[e.slot] = true
	}
	for slot := range slotOf(2 * s.backends) {
		if !used[slot] {
			s.note("%s has %s again", n.name, backendID(b))
			n.Open(slot, backendID(b))
			return
		}
	}
}

func (s *tale) step() {
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	e := s.engines[s.rng.IntN(len(s.engines))]
	switch dice := s.rng.IntN(100); {
	case !n.up:
		s.note("%s returns", n.name)
		n.start(s.backends)
		s.link()
	case dice < 55:
		e.change(s.rng, 30, s.feedsOf(e))
	case dice < 60:
		e.change(s.rng, 3000, s.feedsOf(e))
	case dice < 70:
		s.read(n, e)
	case dice < 76:
		other := s.nodes[s.rng.IntN(len(s.nodes))]
		s.note("cut %s %s", n.name, other.name)
		s.cut(n, other)
	case dice < 79:
		s.note("%s dies", n.name)
		for _, o := range s.nodes {
			s.cut(n, o)
		}
		n.up = false
		for _, e := range s.engines {
			delete(s.feeds[e], n)
		}
	case dice < 83:
		s.closeBackend(n, s.rng.IntN(s.backends))
	case dice < 86:
		s.lossy = !s.lossy
	case dice < 88:
		s.note("%s has little room", n.name)
		n.inboxes(2000)
	case dice < 90:
		if f := s.feeds[e][n]; f != nil {
			f.SetLive(s.rng.IntN(2) == 0)
		}
	default:
		s.link()
	}
	s.pass(time.Duration(s.rng.IntN(40))*time.Millisecond, s.rng.IntN(40))
}

// inboxes bounds what may wait at a node to be applied.
func (n *fieldNode) inboxes(bytes int) {
	for _, p := range n.peers.all() {
		p.hears.box.bound = bytes
	}
}

// calm repairs all and gives it time.
func (s *tale) calm() {
	s.lossy = false
	for _, n := range s.nodes {
		if !n.up {
			n.start(s.backends)
		}
		for b := range s.backends {
			if n.backends.of((&truth{backend: backendID(b)}).id().Key) == nil {
				s.closeBackend(n, b)
			}
		}
	}
	s.link()
	for _, n := range s.nodes {
		n.inboxes(sourceInbox)
	}
	for _, e := range s.engines {
		for _, f := range s.feedsOf(e) {
			f.SetLive(true)
		}
	}
	for range 60 {
		if s.pass(time.Second, 1000); s.disagrees() == "" {
			return
		}
	}
}

// disagrees is empty when every node knows of each engine what it holds, if anybody
// reads it, and else nothing.
func (s *tale) disagrees() string {
	for _, e := range s.engines {
		for _, n := range s.nodes {
			if why := e.agrees(n.Cluster, len(s.feeds[e]) > 0); why != "" {
				return why
			}
		}
	}
	return ""
}

// Whatever happens to nodes, links and lanes, when it is over every node knows of
// each engine what it holds, if anybody reads it, and else nothing.
func TestEveryNodeKnowsWhatTheTellerKnows(t *testing.T) {
	tales := uint64(60)
	if virtualtime.Raced {
		tales = 20
	}
	for seed := uint64(1); seed <= tales; seed++ {
		if *oneSchedule != 0 && seed != *oneSchedule {
			continue
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			s := newTale(t, seed)
			for range 150 {
				s.step()
			}
			s.calm()
			if why := s.disagrees(); why != "" {
				t.Fatalf("%s; what happened: %q", why, s.happened)
			}
			s.pass(2*time.Second, 1000) // acknowledgements
			s.checkBounds()
		})
	}
}

// checkBounds looks whether what is told and not told any more was let go.
func (s *tale) checkBounds() {
	for _, n := range s.nodes {
		streams := 0
		for _, p := range n.peers.all() {
			for _, t := range p.tells.all {
				if t.active {
					streams++
				}
				if t.bytes != 0 || len(t.pages) != 0 {
					s.t.Errorf("%s: %d bytes of pages are under way at rest", n.name, t.bytes)
				}
			}
			if n := len(p.tells.due) + len(p.tells.gone); n != 0 {
				s.t.Errorf("%d things are due at rest", n)
			}
		}
		audience := 0
		for _, f := range n.index.feeds {
			audience += int(f.audience.Load())
		}
		if audience != streams {
			s.t.Errorf("%s: %d streams, and an audience of %d", n.name, streams, audience)
		}
		if got := n.cfg.Index.Stats().Sources; got != len(n.index.status()) {
			s.t.Errorf("%s: %d sources are open, %d in use", n.name, got, len(n.index.status()))
		}
	}
}
