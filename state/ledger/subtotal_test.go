package ledger

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kvca/state"
)

func TestChangesAreToldOnce(t *testing.T) {
	l := New()
	expect := func(when string, want ...Subtotal) {
		t.Helper()
		if got := l.Changes(nil); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	expect("at first")
	l.Reserve(order(1, 2))
	expect("after a reservation", Subtotal{2, Load{1000, 1}})
	expect("after nothing")
	l.Reserve(order(2, 2))
	l.Release(ID{2, 1})
	expect("after what came and went")
	grantTo(t, l, 1, 1, 2)
	l.Tell(1, 2, Load{5, 5})
	expect("after what is others'")
	l.Prefilled(ID{1, 1})
	expect("after the response began", Subtotal{2, Load{0, 1}})
	l.Release(ID{1, 1})
	expect("after the end", Subtotal{2, Load{}})
}

func TestChangesTellOfAReset(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	l.Changes(nil)
	l.Reset(0)
	if got, want := l.Changes(nil), []Subtotal{{}}; !slices.Equal(got, want) {
		t.Errorf("after Reset: %+v, want %+v", got, want)
	}
	l.Reserve(order(2, 0))
	l.Changes(nil)
	l.Reset(0)
	l.Reserve(order(3, 0))
	if got, want := l.Changes(nil), []Subtotal{{0, Load{1000, 1}}}; !slices.Equal(got, want) {
		t.Errorf("the new backend happens to have the old one's load: %+v, want %+v", got, want)
	}
	l.Reset(1)
	if got := l.Changes(nil); len(got) != 0 {
		t.Errorf("there was nothing to forget: %+v", got)
	}
}

func TestSubtotalsAreAllThatThisNodeHolds(t *testing.T) {
	l := New()
	l.Reserve(order(1, 2))
	l.Reserve(order(2, 5))
	l.Reserve(order(3, 7))
	l.Release(ID{3, 1})
	grantTo(t, l, 1, 1, 6)
	l.Changes(nil)
	want := []Subtotal{{2, Load{1000, 1}}, {5, Load{1000, 1}}}
	if got := l.Subtotals(nil); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A peer that is told all subtotals at any time, and every change, knows the
// truth after the last changes.
func TestWhoIsToldSubtotalsAndChangesKnowsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, peer := New(), New()
		tell := func(list []Subtotal) {
			for _, s := range list {
				peer.Tell(1, s.Slot, s.Load)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := ID{rapid.Uint64Range(0, 5).Draw(t, "id"), 1}
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				l.Adopt(Self, Held{ID: id, Slot: state.Slot(id[0] % 3), Novel: 7})
			case 1:
				l.Prefilled(id)
			case 2:
				l.Release(id)
			case 3:
				tell(l.Changes(nil))
			case 4: // a new link: what was told before is void
				peer.Drop(1)
				tell(l.Subtotals(nil))
			}
		}
		tell(l.Changes(nil))
		for s := range state.Slot(3) {
			peer.SetRole(s, Follower)
			if got, want := peer.Load(s), l.Own(s); got != want {
				t.Fatalf("slot %d: the peer knows %+v, the truth is %+v", s, got, want)
			}
		}
	})
}
