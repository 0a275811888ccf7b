package ledger

import (
	"math"
	"sync"
	"testing"

	"kvca/state"
)

// Peers re-assert, ask, tell and survey while this node routes. Whatever the
// interleaving, this node's own come out even and each peer's last set counts.
func TestPeersAndOwnRequestsDoNotDisturbEachOther(t *testing.T) {
	l := New()
	var wg sync.WaitGroup
	for h := Holder(1); h <= 4; h++ {
		held := make([]Held, 2*piece)
		for i := range held {
			held[i] = Held{ID: ID{uint64(i), uint64(h)}, Slot: state.Slot(i % 4), Novel: 10}
		}
		wg.Go(func() {
			for i := range uint64(20) {
				o := order(i, 0, 1, 2, 3)
				o.ID = ID{1 << 40, uint64(h)<<32 + i}
				l.ReserveFor(h, o, math.Inf(1))
				l.Tell(h, state.Slot(i%4), Load{Active: int64(i)})
				l.Replace(h, held, nil)
				l.Holds(h, nil, nil)
			}
		})
	}
	for w := range uint64(2) {
		wg.Go(func() {
			for i := range uint64(500) {
				o := order(w<<32+i, 0, 1, 2, 3)
				l.Survey(o, nil, nil)
				l.Reserve(o)
				l.Note(o.Candidates[0].Slot, Load{})
				l.Prefilled(o.ID)
				l.Release(o.ID)
				l.NextEpoch()
				l.Changes(nil)
			}
		})
	}
	wg.Wait()
	for s := range state.Slot(4) {
		if got, want := l.Load(s), (Load{Novel: 4 * piece / 2 * 10, Active: 4 * piece / 2}); got != want {
			t.Errorf("slot %d: %+v, want %+v", s, got, want)
		}
	}
	if l.Held() != 0 {
		t.Errorf("%d own reservations are left", l.Held())
	}
}
