package ledger

import (
	"slices"
	"testing"

	"kvca/state"
)

func TestAdoptMakesTheHoldWhatItsHolderSays(t *testing.T) {
	l := New()
	d := Held{ID: ID{1, 2}, Slot: 0, Novel: 70}
	for _, step := range []struct {
		name string
		edit func()
		want [2]Load
	}{
		{"booked where it was unknown", func() {}, [2]Load{{70, 1}, {}}},
		{"booked once", func() {}, [2]Load{{70, 1}, {}}},
		{"of another size", func() { d.Novel = 90 }, [2]Load{{90, 1}, {}}},
		{"prefilled", func() { d.Prefilled = true }, [2]Load{{0, 1}, {}}},
		{"still prefilled, since this is older", func() { d.Prefilled = false }, [2]Load{{0, 1}, {}}},
		{"moved", func() { d.Slot = 1 }, [2]Load{{}, {90, 1}}},
	} {
		step.edit()
		if !l.Adopt(3, d) || l.Load(0) != step.want[0] || l.Load(1) != step.want[1] || l.HeldBy(3) != 1 {
			t.Errorf("%s: %+v and %+v, %d held", step.name, l.Load(0), l.Load(1), l.HeldBy(3))
		}
	}
}

func TestAdoptAfterTheReleaseBooksNothing(t *testing.T) {
	l := New()
	l.Release(ID{1, 1})
	if l.Adopt(Self, Held{ID: ID{1, 1}, Slot: 0, Novel: 5}) || l.Load(0) != (Load{}) {
		t.Errorf("the client had left, yet %+v is booked", l.Load(0))
	}
}

func TestAdoptBooksOnTheBackendThatIsThereNow(t *testing.T) {
	l := New()
	d := Held{ID: ID{1, 2}, Slot: 0, Novel: 70}
	l.Adopt(1, d)
	l.PrefilledFor(1, d.ID)
	l.Reset(0)
	l.Adopt(1, d)
	if got := l.Load(0); got != (Load{70, 1}) || l.HeldBy(1) != 1 {
		t.Errorf("%+v, %d held", got, l.HeldBy(1))
	}
}

func TestReplaceConcernsOneHolder(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	grantTo(t, l, 1, 1, 0)
	grantTo(t, l, 2, 2, 0)
	l.Replace(1, nil, nil)
	if got := l.Load(0); got != (Load{Novel: 2000, Active: 2}) || l.HeldBy(1) != 0 {
		t.Errorf("%+v, %d held", got, l.HeldBy(1))
	}
}

func TestReplaceKeepsWhatMayBeOnItsWay(t *testing.T) {
	l := New()
	granted := grantTo(t, l, 1, 1, 0)
	lost := grantTo(t, l, 1, 2, 0)
	l.Replace(1, nil, []ID{granted, {77, 2}})
	if got := l.Load(0); got != (Load{Novel: 1000, Active: 1}) {
		t.Errorf("with one pending: %+v", got)
	}
	if l.ReleaseFor(1, lost) || !l.ReleaseFor(1, granted) {
		t.Error("the wrong one was kept")
	}
}

func TestReplaceDoesNotBookWhatWasReleased(t *testing.T) {
	l := New()
	id := grantTo(t, l, 1, 1, 0)
	held := l.Holds(1, nil, nil)
	l.ReleaseFor(1, id)
	l.Replace(1, held, []ID{id})
	if l.Load(0) != (Load{}) || l.HeldBy(1) != 0 {
		t.Errorf("an older set brought a released hold back: %+v", l.Load(0))
	}
}

func TestReplaceTakesSetsOfAnySize(t *testing.T) {
	l := New()
	for _, n := range []int{1, piece, 3*piece + 1, 0} {
		held := make([]Held, n)
		for i := range held {
			held[i] = Held{ID: ID{uint64(i), 2}, Slot: state.Slot(i % 7), Novel: 2}
		}
		l.Replace(4, held, nil)
		var sum Load
		for s := range state.Slot(7) {
			sum = sum.plus(l.Load(s))
		}
		if want := (Load{Novel: 2 * int64(n), Active: int64(n)}); sum != want || l.HeldBy(4) != n {
			t.Errorf("%+v of %+v, %d held", sum, want, l.HeldBy(4))
		}
	}
}

func TestHoldsAreListedByHolderAndSlot(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	l.Reserve(order(2, 1))
	l.Prefilled(ID{2, 1})
	grantTo(t, l, 1, 3, 1)
	first := Held{ID: ID{9, 9}}
	got := l.Holds(Self, []Held{first}, func(s state.Slot) bool { return s == 1 })
	want := []Held{first, {ID: ID{2, 1}, Slot: 1, Novel: 1000, Prefilled: true}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := len(l.Holds(Self, nil, nil)); n != 2 {
		t.Errorf("%d own holds are listed, want 2", n)
	}
	if got := l.Holds(7, nil, nil); len(got) != 0 {
		t.Errorf("a stranger holds %+v", got)
	}
}
