package feed

import (
	"fmt"
	"time"
)

// Status is what a feed knows about itself.
type Status struct {
	State   string    // connecting, replaying, live or degraded
	Problem string    // for an operator: what is wrong and what to do; empty if nothing
	Silent  bool      // requests flow and no events come
	Seq     uint64    // of the batch applied last
	Last    time.Time // when a batch came last; zero if none did

	Batches uint64 // applied
	Events  uint64 // in them, of any group
	Gaps    uint64 // noticed
	Replays uint64 // asked for
	Damaged uint64 // batches that could not be read
	Dropped uint64 // live batches for which there was no room
	Overlap uint64 // live batches that were known already
	Resets  map[string]uint64
}

// state is the mode's name in status.
func (m *machine) state() string {
	switch {
	case m.mode == connecting:
		return "connecting"
	case m.mode == replaying:
		return "replaying"
	case m.stale:
		return "degraded"
	}
	return "live"
}

// snapshot is what Status is made of. The worker makes one after each turn.
type snapshot struct {
	state, problem string
	silent         bool
	next           uint64
	counts         counts
	last           time.Time
}

// Status is the feed's state as of now. It waits for nobody.
func (f *Feed) Status() Status {
	s := f.status.Load()
	status := Status{
		State: s.state, Problem: s.problem, Silent: s.silent, Last: s.last,
		Batches: s.counts.batches, Events: s.counts.events, Gaps: s.counts.gaps, Replays: s.counts.replays,
		Damaged: s.counts.damaged, Dropped: s.counts.dropped, Overlap: s.counts.overlap,
		Resets: make(map[string]uint64, reasons),
	}
	if s.next > 0 {
		status.Seq = s.next - 1
	}
	for r, n := range s.counts.resets {
		status.Resets[Reason(r).String()] = n
	}
	if n := f.listener.foreign.Load(); n > 0 {
		status.Problem = fmt.Sprintf("%d messages at %s came from another engine than the one that connected last: they are not heard: "+
			"give each engine an endpoint of its own", n, f.config.Endpoint)
	}
	return status
}
