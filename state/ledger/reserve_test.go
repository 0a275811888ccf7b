package ledger

import (
	"math"
	"slices"
	"testing"

	"kvca/state"
)

func TestReserveForRefusesAboveTheBound(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	o := peerOrder(2, 0)
	g, ok := l.ReserveFor(1, o, 1511)
	if ok || g.Booked || g.Score != 1512 || l.HeldBy(1) != 0 {
		t.Errorf("the least score of 1512 exceeds the bound: %+v, %v, %d held", g, ok, l.HeldBy(1))
	}
	g, ok = l.ReserveFor(1, o, 1512)
	if !ok || !g.Booked || g.Score != 1512 || l.HeldBy(1) != 1 {
		t.Errorf("the least score is the bound: %+v, %v, %d held", g, ok, l.HeldBy(1))
	}
	if g, ok = l.ReserveFor(1, o, 0); !ok || !g.Booked || l.Load(0).Active != 2 {
		t.Errorf("asked again with a lower bound: %+v, %v, load %+v", g, ok, l.Load(0))
	}
}

func TestReserveForWithoutCandidatesOrHolderRefuses(t *testing.T) {
	l := New()
	for _, c := range []struct {
		h Holder
		o *Order
	}{{1, order(1)}, {MaxHolders, order(1, 0)}} {
		if g, ok := l.ReserveFor(c.h, c.o, math.Inf(1)); ok || g.Index != -1 || g.Booked {
			t.Errorf("for %d: %+v, %v", c.h, g, ok)
		}
	}
	if l.Adopt(MaxHolders, Held{}) || l.HeldBy(MaxHolders) != 0 || l.Load(0) != (Load{}) {
		t.Errorf("something is booked for a holder that can't be: %+v", l.Load(0))
	}
}

func TestReserveForAfterTheReleaseBooksNothing(t *testing.T) {
	l := New()
	o := peerOrder(1, 0)
	l.ReleaseFor(1, o.ID)
	if g, ok := l.ReserveFor(1, o, math.Inf(1)); !ok || g.Booked || l.Load(0) != (Load{}) || l.Counters().Late != 1 {
		t.Errorf("%+v, %v, load %+v, counters %+v", g, ok, l.Load(0), l.Counters())
	}
}

func TestReleaseKeepsNoOtherHolderFromBooking(t *testing.T) {
	l := New()
	o := order(1, 0)
	l.ReleaseFor(1, o.ID)
	if g := l.Reserve(o); !g.Booked {
		t.Errorf("a peer released an id of this node's: %+v", g)
	}
}

// The answer is where the request goes, so it is also where the load counts.
func TestReserveAgainElsewhereMovesTheHold(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	l.Prefilled(ID{1, 1})
	if g := l.Reserve(order(1, 4)); !g.Booked {
		t.Errorf("%+v", g)
	}
	if l.Load(0) != (Load{}) || l.Load(4) != (Load{Novel: 1000, Active: 1}) || l.Held() != 1 {
		t.Errorf("loads %+v and %+v, %d held", l.Load(0), l.Load(4), l.Held())
	}
}

func TestWhereIsAskedOfOwnReservations(t *testing.T) {
	l := New()
	l.Reserve(order(1, 6))
	id := grantTo(t, l, 1, 1, 5)
	if s, ok := l.Where(ID{1, 1}); !ok || s != 6 {
		t.Errorf("own: slot %d, %v", s, ok)
	}
	if s, ok := l.Where(id); ok {
		t.Errorf("a peer's is found on slot %d", s)
	}
}

func TestReserveAgainAfterAResetCountsOnTheNewBackend(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	l.Reset(0)
	if g := l.Reserve(order(1, 0)); !g.Booked || l.Load(0) != (Load{Novel: 1000, Active: 1}) {
		t.Errorf("%+v, load %+v", g, l.Load(0))
	}
}

func TestHoldersTouchOnlyTheirOwn(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	id := grantTo(t, l, 1, 1, 0)
	for _, h := range []Holder{Self, 2, MaxHolders} {
		if l.PrefilledFor(h, id) || l.ReleaseFor(h, id) {
			t.Errorf("holder %d gave back what 1 holds", h)
		}
	}
	if l.PrefilledFor(1, ID{1, 1}) || l.ReleaseFor(1, ID{1, 1}) {
		t.Error("a peer gave back what this node holds")
	}
	if !l.PrefilledFor(1, id) || l.PrefilledFor(1, id) || !l.ReleaseFor(1, id) || l.ReleaseFor(1, id) {
		t.Error("a holder gives back its own exactly once")
	}
	if got := l.Load(0); got != (Load{Novel: 1000, Active: 1}) || l.Held() != 1 {
		t.Errorf("what this node holds has changed: %+v", got)
	}
}

func TestPeersDoNotTakeThisNodesRoom(t *testing.T) {
	l := New()
	l.forPeers = MaxHeld
	if g, ok := l.ReserveFor(1, peerOrder(1, 0), math.Inf(1)); !ok || g.Booked {
		t.Errorf("a peer beyond the bound: %+v, %v", g, ok)
	}
	if l.Adopt(2, Held{ID: ID{5, 5}}) || l.Counters().Full != 2 {
		t.Errorf("adopted beyond the bound; counters %+v", l.Counters())
	}
	if g := l.Reserve(order(1, 0)); !g.Booked {
		t.Error("this node found no room for itself")
	}
}

func TestCountersTellWhoseReservationsWereBooked(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	l.Reserve(order(1, 0))
	grantTo(t, l, 1, 1, 0)
	l.Adopt(Self, Held{ID: ID{8, 8}})
	l.Adopt(Self, Held{ID: ID{8, 8}, Prefilled: true})
	if got, want := l.Counters(), (Counters{Granted: 1, ForPeers: 1, Adopted: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestSurveyFindsTheCheapestOfEachOwner(t *testing.T) {
	l := New()
	l.Reserve(order(1, 1))
	o := order(2, 0, 1, 2, 3, 9)
	o.Candidates[0].Cost = 5
	o.Candidates[3].Cost = 4
	best := l.Survey(o, []uint8{2, 2, 0, 4}, make([]Best, 1, 8))
	none := math.Inf(1)
	want := []Best{{best[0].Index, 0, 2, 0}, {Index: -1}, {0, 5, 1, 1512}, {Index: -1}, {3, 4, 1, none}}
	if !slices.Equal(best, want) || best[0].Index != 2 && best[0].Index != 4 {
		t.Fatalf("got %+v, want %+v with 2 or 4 first", best, want)
	}
	for _, b := range best {
		if b.Index >= 0 && l.Score(o, b.Index) != b.Score {
			t.Errorf("candidate %d: surveyed %g, scored %g", b.Index, b.Score, l.Score(o, b.Index))
		}
	}
	if l.Held() != 1 || len(l.Survey(order(3), nil, best)) != 0 {
		t.Error("a survey booked something, or found what was not offered")
	}
}

func TestSurveyBreaksTiesEvenly(t *testing.T) {
	l, seen := New(), map[int]int{}
	ownerOf := []uint8{1, 0, 1, 0, 1, 0, 1}
	var best []Best
	for i := range uint64(9000) {
		o := order(i*7919, 0, 1, 2, 3, 4, 5)
		best = l.Survey(o, ownerOf, best)
		seen[best[0].Index]++
		seen[best[1].Index]++
	}
	for i := range 6 {
		if seen[i] < 2750 || seen[i] > 3250 {
			t.Errorf("candidate %d was found %d of 9000 times among three equals", i, seen[i])
		}
	}
}

func TestChoosingAllocatesNothing(t *testing.T) {
	l := New()
	o := order(1)
	ownerOf, best := make([]uint8, 100), make([]Best, 0, 8)
	for s := range state.Slot(100) {
		o.Candidates = append(o.Candidates, Candidate{Slot: s, Slowness: 1})
		ownerOf[s] = uint8(s % 8)
	}
	if n := testing.AllocsPerRun(100, func() {
		best = l.Survey(o, ownerOf, best)
		l.Peek(o)
		l.Score(o, 3)
		l.ReserveFor(1, o, -1)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
