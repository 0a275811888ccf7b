package prompt

import (
	"sync"
	"sync/atomic"
	"time"
)

// way is a way of finding tokens, in the order in which they are tried.
type way int

const (
	wayRender way = iota
	wayTokenize
	wayLlamaCPP
	wayTGI
	wayLocal

	ways // how many there are
)

var wayNames = [ways]string{"render", "tokenize", "llamacpp", "tgi", "local"}

func (w way) String() string { return wayNames[w] }

// source is what an Answer calls the way.
func (w way) source() string {
	switch w {
	case wayRender:
		return FromRender
	case wayLocal:
		return FromLocal
	}
	return FromTokenize
}

// wayState is what is known of a way for one model. The model's lock guards all
// but epoch.
type wayState struct {
	works   bool      // it has answered, and not been absent since
	absent  time.Time // when it is tried again, zero if it is not known to be absent
	dropped bool      // found wrong; until a self-test finds it right
	proven  bool      // local only: a self-test found it equal to the engine's
	problem string    // why it is not used, for people
	checks  checks
	failed  int    // calls since one that worked
	failure string // the last of them
	// epoch counts how often the way has been thrown out.
	epoch atomic.Uint32
}

// checks are the last comparisons with what engines said of their own prompts.
type checks struct {
	wrong uint32 // a bit each, the newest lowest
}

// A way is thrown out when so many of the last so many comparisons failed.
const (
	maxWrong    = 3
	checkWindow = 20
)

// add takes one more comparison and reports whether there are too many that failed.
func (c *checks) add(right bool) bool {
	c.wrong = c.wrong << 1 & (1<<checkWindow - 1)
	if !right {
		c.wrong |= 1
	}
	n := 0
	for bits := c.wrong; bits != 0; bits &= bits - 1 {
		n++
	}
	return n >= maxWrong
}

// model is what is known of the ways for one model.
type model struct {
	mu   sync.Mutex
	ways [ways]wayState
}

// plan lists the ways to try for a request, the best first. A way whose absence is
// long ago is in it again, for this one request: others wait for what comes of it.
func (m *model) plan(now time.Time, retry time.Duration, local bool, p Preference) []way {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.order(now, local, p)
	for _, w := range list {
		if s := &m.ways[w]; !s.absent.IsZero() {
			s.absent = now.Add(retry)
		}
	}
	return list
}

// order lists the ways that may be used, the best first. The lock is held.
func (m *model) order(now time.Time, local bool, p Preference) []way {
	l := &m.ways[wayLocal]
	local = local && !l.dropped && (l.proven || p == PreferLocal)
	list := make([]way, 0, ways)
	if local && p != PreferEngine {
		list = append(list, wayLocal)
	}
	for w := range wayLocal {
		s := &m.ways[w]
		if !s.dropped && !now.Before(s.absent) {
			list = append(list, w)
		}
	}
	if local && p == PreferEngine {
		list = append(list, wayLocal)
	}
	return list
}

// mistaken is the problem of a way that was thrown out, empty if none was.
func (m *model) mistaken() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w := range m.ways {
		if s := &m.ways[w]; s.dropped {
			return way(w).String() + ": " + s.problem
		}
	}
	return ""
}

func (m *model) works(w way) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ways[w].works
}

func (m *model) worked(w way) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.ways[w]
	s.works, s.absent = true, time.Time{}
	s.failed, s.failure = 0, ""
	if !s.dropped {
		s.problem = ""
	}
}

// failing counts a call that came to nothing, though the way is there.
func (m *model) failing(w way, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.ways[w]
	s.failed++
	s.failure = why
}

func (m *model) isAbsent(w way, until time.Time, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.ways[w]
	s.works, s.absent = false, until
	if !s.dropped {
		s.problem = why
	}
}

// checked takes what a comparison of ids of a way's epoch came to, and reports
// whether the way is thrown out by it.
func (m *model) checked(s *wayState, epoch uint32, right bool, problem string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.dropped || s.epoch.Load() != epoch || !s.checks.add(right) {
		return false
	}
	s.drop(problem)
	return true
}

// drop throws a way out, and with it all that it found.
func (s *wayState) drop(problem string) {
	s.dropped, s.proven, s.problem = true, false, problem
	s.checks = checks{}
	s.epoch.Add(1)
}

// restore takes a way in again.
func (s *wayState) restore() {
	s.dropped, s.problem, s.absent, s.checks = false, "", time.Time{}, checks{}
	s.failed, s.failure = 0, ""
}
