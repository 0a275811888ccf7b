package blockmap

import (
	"sync"
	"testing"
	"time"

	"kvca/state"
)

// A long walk lets writers in between its pieces, and they may bring backends
// that it has made no room for.
func TestLongWalkMeetsNewBackends(t *testing.T) {
	chain := random(seeded(), walkPiece+10)
	for range 20 {
		m := testMap(t, time.Minute)
		learn(m, 0, chain, 0)
		var wg sync.WaitGroup
		wg.Go(func() {
			for s := range state.Slot(300) {
				m.Expect(s, chain[:20])
				learn(m, s, chain[:20], 0)
			}
		})
		for range 30 {
			walk(m, chain, 0)
		}
		wg.Wait()
	}
}
