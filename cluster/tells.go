package cluster

import (
	"sync"

	"kvca/cluster/wire"
)

// tells is what this node tells one peer of its sources.
type tells struct {
	mu   sync.Mutex
	on   bool // the link is up
	all  map[wire.SourceID]*telling
	due  map[*telling]bool
	gone []wire.SourceID
}

// begin starts over with a new link: all feeds are offered.
func (s *tells) begin(feeds map[wire.SourceID]*Feed) {
	s.end()
	s.mu.Lock()
	s.on, s.all, s.due = true, make(map[wire.SourceID]*telling), make(map[*telling]bool)
	s.mu.Unlock()
	for _, f := range feeds {
		s.add(f)
	}
}

// end forgets all streams.
func (s *tells) end() {
	s.mu.Lock()
	all := s.all
	s.on, s.all, s.due, s.gone = false, nil, nil, nil
	s.mu.Unlock()
	for _, t := range all {
		t.stop()
	}
}

func (s *tells) add(f *Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on && s.all[f.place.id] == nil {
		t := &telling{f: f, pause: minCopyPause}
		s.all[f.place.id] = t
		s.due[t] = true
	}
}

func (s *tells) remove(f *Feed) {
	s.mu.Lock()
	t := s.all[f.place.id]
	if t != nil && t.f == f {
		delete(s.all, f.place.id)
		delete(s.due, t)
		s.gone = append(s.gone, f.place.id)
	}
	s.mu.Unlock()
	if t != nil {
		t.stop()
	}
}

func (s *tells) get(id wire.SourceID) *telling {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// owe says that something is to be done for a telling, or to be said of a source that
// is no more.
func (s *tells) owe(t *telling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[t.f.place.id] == t {
		s.due[t] = true
	}
}

func (s *tells) offerAgain(f *Feed) {
	t := s.get(f.place.id)
	if t == nil || t.f != f {
		return
	}
	t.mu.Lock()
	t.offered = false
	t.mu.Unlock()
	s.owe(t)
}

func (s *tells) owes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.due)+len(s.gone) > 0
}

// take gives what is due, and leaves it so: settle takes it away.
func (s *tells) take() (due []*telling, gone []wire.SourceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.due {
		due = append(due, t)
	}
	gone, s.gone = s.gone, nil
	return due, gone
}

func (s *tells) settle(t *telling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.due, t)
}

// maxGone bounds what waits to be said to be gone, or a peer could ask for ever more
// of what there never was.
const maxGone = 1 << 16

func (s *tells) goneAgain(gone []wire.SourceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on && len(s.gone) < maxGone {
		s.gone = append(s.gone, gone...)
	}
}
