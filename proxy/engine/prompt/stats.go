package prompt

import (
	"slices"
	"sync/atomic"
	"time"
)

// counters count since the start.
type counters struct {
	sources  [len(Sources)]atomic.Uint64
	failures [len(Reasons)]atomic.Uint64
	misses   [len(Reasons)]atomic.Uint64
	waited   timing
	flights  timing
	right    atomic.Uint64
	wrong    atomic.Uint64
}

// timing is how often something took how long in all.
type timing struct{ count, nanos atomic.Int64 }

func (t *timing) add(d time.Duration) {
	t.count.Add(1)
	t.nanos.Add(int64(d))
}

func (t *timing) read() Timing {
	return Timing{Count: t.count.Load(), Sum: time.Duration(t.nanos.Load())}
}

func (c *counters) request(a *Answer, f *Failure, waited time.Duration) {
	c.waited.add(waited)
	if f != nil {
		c.failures[f.index()].Add(1)
		return
	}
	if a.Miss != nil {
		c.misses[a.Miss.index()].Add(1)
	}
	c.sources[slices.Index(Sources[:], a.Source)].Add(1)
}

func (f *Failure) index() int { return slices.Index(Reasons[:], f.Reason) }

func (c *counters) flight(took time.Duration) { c.flights.add(took) }

func (c *counters) checked(right bool) {
	if right {
		c.right.Add(1)
		return
	}
	c.wrong.Add(1)
}

// Timing is a sum of durations.
type Timing struct {
	Count int64
	Sum   time.Duration
}

// Stats is what a Service has done and holds.
type Stats struct {
	// Requests are those that got tokens, by source; Failures those that did not, and
	// Misses those that got an earlier turn's, by reason. All have every name of their
	// closed sets.
	Requests, Failures, Misses map[string]uint64
	// Waited is what Tokens took, for all requests; Searches what it took to find
	// tokens, in the background too.
	Waited, Searches Timing
	// Right and Wrong count comparisons with what engines reported (Learn).
	Right, Wrong uint64

	CacheEntries int
	CacheBytes   int64
	// InFlight are searches, Background those of them that nobody waits for, and
	// BodyBytes what they hold of requests.
	InFlight, Background int
	BodyBytes            int64
}

// Stats returns the counters and sizes of now.
func (s *Service) Stats() Stats {
	st := Stats{
		Requests: map[string]uint64{}, Failures: map[string]uint64{}, Misses: map[string]uint64{},
		Waited: s.count.waited.read(), Searches: s.count.flights.read(),
		Right: s.count.right.Load(), Wrong: s.count.wrong.Load(),
	}
	for i, name := range Sources {
		st.Requests[name] = s.count.sources[i].Load()
	}
	for i, name := range Reasons {
		st.Failures[name], st.Misses[name] = s.count.failures[i].Load(), s.count.misses[i].Load()
	}
	st.CacheEntries, st.CacheBytes = s.cache.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Background, st.BodyBytes, st.InFlight = s.background, s.bodyBytes, s.inFlight
	return st
}
