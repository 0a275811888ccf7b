package cluster

import (
	"testing"
	"time"

	"kvca/state/blockmap"
)

// held is what a node believes a backend to hold.
func (n *testNode) heldSet(b int) map[uint64]bool {
	set := make(map[uint64]bool)
	var cursor blockmap.Cursor
	var all blockmap.Buckets
	all.All()
	s := n.fleet.slot(backendID(b))
	for done := false; !done; {
		done = n.m.Page(&cursor, s, &all, endless, n.c.cfg.Now(), 512, func(_, hash uint64, _ time.Duration) { set[hash] = true })
	}
	return set
}

// Caches that are full: every node evicts by recency as it knows it. They agree on
// nearly all that a backend holds, and do not bring back what others evict.
func TestNodesAgreeOnWhatAFullCacheHolds(t *testing.T) {
	inBubble(t, 70, func(w *world) {
		w.start(3, 2, nil)
		w.eventually("together", 5*time.Second, w.together)
		const mirror = 2000
		for _, n := range w.nodes {
			for b := range 2 {
				n.m.SetMirror(n.fleet.slot(backendID(b)), mirror)
			}
		}
		// 400 conversations of 20 blocks, of which a hundred fit; some come back.
		for range 3000 {
			talk := w.rng.IntN(400)
			if w.chance(70) {
				talk = w.rng.IntN(60) // the busy ones
			}
			w.nodes[w.rng.IntN(3)].learn(talk%2, path(uint64(1000+talk), 20))
			time.Sleep(time.Duration(w.rng.IntN(100)) * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		for b := range 2 {
			first := w.nodes[0].heldSet(b)
			for _, n := range w.nodes[1:] {
				other, common := n.heldSet(b), 0
				for h := range other {
					if first[h] {
						common++
					}
				}
				if share := float64(common) / mirror; share < 0.95 {
					t.Errorf("n0 and %s agree on %.3f of what %s holds (%d and %d locations)", n.name, share, backendID(b), len(first), len(other))
				} else {
					t.Logf("n0 and %s agree on %.3f of what %s holds", n.name, share, backendID(b))
				}
			}
		}
		time.Sleep(30 * time.Second)
		before := make([]uint64, 3)
		for i, n := range w.nodes {
			before[i] = uint64(valueOf(n.c.metrics.repaired))
		}
		time.Sleep(2 * time.Minute)
		for i, n := range w.nodes {
			if got := uint64(valueOf(n.c.metrics.repaired)) - before[i]; got > 50 {
				t.Errorf("at rest %s took over %d locations in two minutes: what one evicts another brings back", n.name, got)
			}
		}
	})
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }
