package cluster

import (
	"context"
	"sync"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/blockmap"
)

// receiving is the stream of deltas from one peer.
type receiving struct {
	mu      sync.Mutex
	last    uint64 // number of the last delta applied
	fresh   bool   // the link is new: the next delta may have any number
	told    uint64 // the last number acknowledged
	applied time.Duration
}

// begin starts over with a new link.
func (s *receiving) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh, s.last, s.told = true, 0, 0
}

// take is whether delta seq is to be applied, and whether some before it are
// missing.
func (s *receiving) take(seq uint64, now time.Duration) (apply, gap bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fresh && seq <= s.last {
		return false, false
	}
	gap = !s.fresh && seq != s.last+1
	s.fresh, s.last, s.applied = false, seq, now
	return true, gap
}

// ack is the acknowledgement that is due, if one is.
func (s *receiving) ack(now time.Duration) (seq uint64, held time.Duration, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == s.last {
		return 0, 0, false
	}
	s.told = s.last
	return s.last, now - s.applied, true
}

// work applies what comes from a peer until ctx ends.
func (c *Cluster) work(ctx context.Context, p *peer) {
	var run wire.Run
	for {
		m, ok := p.inbox.take()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-p.inbox.wake:
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		c.apply(p, m, &run)
	}
}

// apply applies one frame; run is scratch.
func (c *Cluster) apply(p *peer, m mail, run *wire.Run) {
	r := wire.NewReader(m.body)
	switch m.kind {
	case wire.Delta:
		c.applyDelta(p, &r, run)
		return
	case wire.Page:
		c.applyPage(p, &r, run, len(m.body))
	case wire.PageEnd:
		c.endPull(p, &r)
	case wire.Facts:
		if c.facts.hear(&r) > 0 {
			c.malformed(p, m.kind)
		}
	case wire.Roster:
		c.hearRoster(p, m.body)
	}
	if r.Bad() {
		c.malformed(p, m.kind)
	}
}

func (c *Cluster) applyDelta(p *peer, r *wire.Reader, run *wire.Run) {
	now := c.cfg.Now()
	apply, gap := p.in.take(r.Delta(), now)
	if gap {
		c.metrics.gaps.Inc()
		p.pull.want()
	}
	if !apply {
		return
	}
	for r.Rest() > 0 {
		r.Run(run)
		if r.Bad() {
			c.malformed(p, wire.Delta)
			return
		}
		c.applyRun(run, true, now)
	}
}

// applyRun brings a run into the block map and returns how many locations are
// new. Runs of older generations are void; one of a newer one voids what is here.
func (c *Cluster) applyRun(run *wire.Run, extend bool, now time.Duration) (added int) {
	e := c.backends.of(run.Key)
	if e == nil {
		c.metrics.runs.unknown.Inc()
		return 0
	}
	c.adopt(e, run.Generation)
	generation := c.cfg.Map.Generation(e.slot)
	if run.Generation < e.generation.Load() {
		c.metrics.runs.void.Inc()
		return 0
	}
	if run.Dropped {
		c.cfg.Map.Forget(e.slot, run.Hashes, 0)
		return 0
	}
	if len(run.Hashes) == 0 {
		return 0
	}
	c.metrics.runs.applied.Inc()
	if !extend && run.Idle > e.horizon() {
		return 0
	}
	return c.cfg.Map.Merge(e.slot, generation, blockmap.Run{Parent: run.Parent, Hashes: run.Hashes, Idle: run.Idle}, extend, now)
}

// horizon is beyond what idleness a location of the backend is not worth telling:
// its mirror is about to evict it. The owner decides; the last tenth is left
// out, since recency is not known exactly everywhere.
func (e *entry) horizon() time.Duration {
	age := e.age.Load()
	if age == 0 {
		return endless
	}
	return time.Duration(age-1) * time.Millisecond * 9 / 10
}

const endless = time.Duration(1<<63 - 1)

// acknowledge tells a peer how far its deltas are applied.
func (c *Cluster) acknowledge(p *peer) {
	if seq, held, due := p.in.ack(c.cfg.Now()); due {
		p.send(link.Deltas, wire.Ack, wire.AppendAck(nil, seq, held))
	}
}
