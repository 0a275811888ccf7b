package feed

import "time"

// expectedLeast is how many requests must have gone by without an event before
// that means anything: one may have hit the cache in whole.
const expectedLeast = 3

// silence notices that requests flow and no events come.
type silence struct {
	expected int
	waiting  bool
	since    time.Duration
	silent   bool

	any  bool // an event ever came
	last time.Duration
}

// expect counts requests that must cause events. An event that came a while before
// may have been theirs: requests end later than their blocks are stored.
func (s *silence) expect(now time.Duration, n int, limit time.Duration) {
	if s.any && now-s.last < limit {
		return
	}
	s.expected = min(s.expected+n, expectedLeast)
	if s.expected == expectedLeast && !s.waiting {
		s.waiting, s.since = true, now
	}
}

// heard is called when an event came.
func (s *silence) heard(now time.Duration) { *s = silence{any: true, last: now} }

// clear begins anew: none could come.
func (s *silence) clear() { *s = silence{any: s.any, last: s.last} }

func (s *silence) tick(now, limit time.Duration) {
	if s.waiting && now-s.since >= limit {
		s.silent = true
	}
}

func (s *silence) deadline(limit time.Duration) time.Duration {
	if s.waiting && !s.silent {
		return max(s.since+limit, 1)
	}
	return 0
}
