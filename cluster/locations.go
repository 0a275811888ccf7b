package cluster

import (
	"time"

	"kvca/cluster/wire"
	"kvca/state"
	"kvca/state/blockmap"
)

// refreshEvery is how long a block must have been idle for its refresh to be
// news: hits on a hot prefix cost the peers nothing in between, and nodes agree
// on recency to within it.
const refreshEvery = time.Second

// Locations is the block map, with what this node learns told to its peers.
type Locations struct {
	*blockmap.Map
	c *Cluster
}

// Learn records that s holds chain, here and at all peers.
func (l *Locations) Learn(s state.Slot, generation uint64, chain []uint64, now time.Duration) blockmap.News {
	news := l.Map.Learn(s, generation, chain, now)
	if news.OK && news.Len > 0 && l.c.linked.Load() > 0 {
		l.c.learned(s, chain[:news.Len], news)
	}
	return news
}

// Announce tells the peers what s is about to hold. They believe it from then on,
// so that the next turn finds it wherever it comes, however soon after the answer;
// Retract takes it back where there is none.
func (l *Locations) Announce(s state.Slot, generation uint64, chain []uint64, known int) bool {
	e := l.c.backends.at(s)
	if e == nil || l.c.linked.Load() == 0 || l.Map.Generation(s) != generation {
		return false
	}
	l.c.tellRuns(e, chain, min(known, len(chain)-1))
	return true
}

// Confirm records what was announced.
func (l *Locations) Confirm(s state.Slot, generation uint64, chain []uint64, now time.Duration) {
	l.Map.Learn(s, generation, chain, now)
}

// Retract takes an announcement back: a hint, as is Forget.
func (l *Locations) Retract(s state.Slot, generation uint64, chain []uint64, known int) {
	if l.Map.Generation(s) == generation {
		l.c.tellDropped(s, chain[min(known, len(chain)):])
	}
}

// Forget drops locations here, and tells the peers: a hint that repair may undo.
func (l *Locations) Forget(s state.Slot, chain []uint64, from int) {
	l.Map.Forget(s, chain, from)
	l.c.tellDropped(s, chain[min(max(from, 0), len(chain)):])
}

func (c *Cluster) tellDropped(s state.Slot, gone []uint64) {
	e := c.backends.at(s)
	if e == nil || len(gone) == 0 || c.linked.Load() == 0 {
		return
	}
	r := wire.Run{Key: e.key, Generation: e.generation.Load(), Dropped: true, Hashes: gone[:min(len(gone), wire.MaxRun)]}
	c.outbox.add(&r, c.cfg.Now())
	nudge(c.stir)
}

// learned tells what was new of a chain: the suffix with its parent, or of a
// chain that was known the leaf alone, since to refresh a leaf refreshes what
// leads to it.
func (c *Cluster) learned(s state.Slot, chain []uint64, news blockmap.News) {
	e := c.backends.at(s)
	if e == nil {
		return
	}
	first := news.First
	if first >= len(chain) {
		if news.Idle < refreshEvery {
			return
		}
		first = len(chain) - 1
	}
	c.tellRuns(e, chain, first)
}

// tellRuns tells chain from block first on.
func (c *Cluster) tellRuns(e *entry, chain []uint64, first int) {
	r := wire.Run{Key: e.key, Generation: e.generation.Load()}
	for first < len(chain) {
		if first > 0 {
			r.Parent = chain[first-1]
		}
		next := min(first+wire.MaxRun, len(chain))
		r.Hashes = chain[first:next]
		c.outbox.add(&r, c.cfg.Now())
		first = next
	}
	nudge(c.stir)
}

// Restarted begins a new generation of the backend in slot s, everywhere: its
// engine has lost its cache. Where a peer has seen the same restart first and
// told it, nothing more is lost.
func (c *Cluster) Restarted(s state.Slot) {
	e := c.backends.at(s)
	if e == nil {
		c.cfg.Map.Void(s)
		return
	}
	now := c.cfg.Now()
	if at := e.adopted.Swap(0); at != 0 && now-time.Duration(at) < sameRestart {
		return
	}
	next := e.generation.Add(1)
	c.cfg.Map.Void(s)
	c.facts.tellGeneration(e.id, next)
}

// sameRestart is how long after a peer this node may notice the same restart: the
// metrics of an idle backend are read every 16 s, give or take a tenth.
const sameRestart = 20 * time.Second

// adopt follows a generation that a peer knows of.
func (c *Cluster) adopt(e *entry, generation uint64) {
	for {
		own := e.generation.Load()
		if generation <= own {
			return
		}
		if e.generation.CompareAndSwap(own, generation) {
			e.adopted.Store(int64(max(c.cfg.Now(), 1)))
			c.cfg.Map.Void(e.slot)
			return
		}
	}
}
