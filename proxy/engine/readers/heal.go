package readers

import (
	"fmt"
	"time"

	"kvca/state/kvindex"
)

// Pauses between two attempts to have a source whole again.
const (
	firstHeal = 30 * time.Second
	lastHeal  = 10 * time.Minute
)

// heal paces the attempts for one source: what has room now may be full once the
// source is whole, and each attempt costs a replay.
type heal struct {
	next time.Time // not before
	wait time.Duration
}

// due reports whether an attempt may be made now, and counts it. Each waits twice as
// long after the one before; after quiet for the longest wait it begins small again.
func (h *heal) due(now time.Time) bool {
	if now.Before(h.next) {
		return false
	}
	if now.Sub(h.next) > lastHeal {
		h.wait = 0
	}
	h.wait = min(max(2*h.wait, firstHeal), lastHeal)
	h.next = now.Add(h.wait)
	return true
}

// full is the problem of a source that has not taken all that it was told.
func full(held *kvindex.SourceStats) string {
	if !held.Partial {
		return ""
	}
	return fmt.Sprintf("the index is full: %d blocks were not taken; raise --max-kv-index-bytes", held.Dropped)
}

// heal starts the sources over that were at the bound of memory, if there is room
// now. It reports whether it has started one: others wait for what that one needs.
func (g *reading) heal(now time.Time, room func() bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.feeds {
		if !f.replay || !f.source.Stats().Partial || f.Status().State != "live" || !room() || !f.heal.due(now) {
			continue
		}
		g.reader.cfg.Logger.Info("the index has room again: all is asked for", "backend", g.backend.ID, "rank", f.rank)
		f.Resync()
		return true
	}
	return false
}
