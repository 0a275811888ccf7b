package ledger

import (
	"math"
	"testing"

	"kvca/state"
)

// peerOrder is an order for one slot, distinct from those of order.
func peerOrder(id uint64, s state.Slot) *Order {
	o := order(id, s)
	o.ID[1] = 2
	return o
}

func grantTo(t *testing.T, l *Ledger, h Holder, id uint64, s state.Slot) ID {
	t.Helper()
	o := peerOrder(id, s)
	if g, ok := l.ReserveFor(h, o, math.Inf(1)); !ok || !g.Booked {
		t.Fatalf("reserving for %d: %+v, %v", h, g, ok)
	}
	return o.ID
}

func TestRoleDecidesWhoseWordCountsForOthers(t *testing.T) {
	l := New()
	l.Reserve(order(1, 3))
	grantTo(t, l, 1, 1, 3)
	grantTo(t, l, 2, 2, 3)
	l.PrefilledFor(2, ID{2, 2})
	l.Tell(1, 3, Load{Novel: 500, Active: 4})
	l.Tell(2, 3, Load{Novel: 100, Active: 1})
	l.Note(3, Load{Novel: 7, Active: 9})
	own := Load{Novel: 1000, Active: 1}
	for _, c := range []struct {
		role   Role
		others Load
	}{
		{Owner, Load{Novel: 1000, Active: 2}},
		{Learning, Load{Novel: 1000, Active: 5}},
		{Follower, Load{Novel: 7, Active: 9}},
		{Owner, Load{Novel: 1000, Active: 2}},
	} {
		l.SetRole(3, c.role)
		if got := l.Load(3); got != own.plus(c.others) {
			t.Errorf("role %d sees %+v, want %+v", c.role, got, own.plus(c.others))
		}
		if got := l.Others(Self, 3); got != c.others {
			t.Errorf("role %d: others hold %+v, want %+v", c.role, got, c.others)
		}
		if got := l.Own(3); got != own {
			t.Errorf("role %d: own %+v", c.role, got)
		}
	}
}

func TestNoteLivesUntilTheSecondEpoch(t *testing.T) {
	l := New()
	l.SetRole(0, Follower)
	l.Tell(1, 0, Load{Active: 1})
	note, told := Load{Active: 5}, Load{Active: 1}
	l.Note(0, note)
	for i, want := range []Load{note, note, told, told} {
		if got := l.Load(0); got != want {
			t.Errorf("after %d epochs: %+v, want %+v", i, got, want)
		}
		l.NextEpoch()
	}
	l.Note(0, note)
	l.NextEpoch()
	l.Note(0, Load{Active: 6})
	l.NextEpoch()
	if got := l.Load(0); got.Active != 6 {
		t.Errorf("a note of the last epoch has gone: %+v", got)
	}
	l.NextEpoch()
	if len(l.noted) != 0 || l.Load(0) != told {
		t.Errorf("%d notes stay listed, load %+v", len(l.noted), l.Load(0))
	}
}

func TestOwnHoldsComeAndGoBesideANote(t *testing.T) {
	l := New()
	l.SetRole(0, Follower)
	l.Note(0, Load{Novel: 10, Active: 2})
	l.Adopt(Self, Held{ID: ID{1, 1}, Slot: 0, Novel: 30})
	if got := l.Load(0); got != (Load{Novel: 40, Active: 3}) {
		t.Errorf("with the granted hold: %+v", got)
	}
	l.Release(ID{1, 1})
	if got := l.Load(0); got != (Load{Novel: 10, Active: 2}) {
		t.Errorf("after its release: %+v", got)
	}
}

// What an owner answers leaves out what the asking node holds, which it knows
// better itself: granted to it here, told by it, or both.
func TestOthersLeaveOutTheAskingNode(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	grantTo(t, l, 1, 1, 0)
	grantTo(t, l, 2, 2, 0)
	grantTo(t, l, 2, 3, 0)
	l.Tell(1, 0, Load{Novel: 50, Active: 4})
	l.Tell(3, 0, Load{Novel: 70, Active: 1})
	own := Load{Novel: 1000, Active: 1}
	for _, c := range []struct {
		name   string
		role   Role
		asking Holder
		others Load
	}{
		{"owner", Owner, 1, Load{2000, 2}},
		{"owner, to one that holds more", Owner, 2, Load{1000, 1}},
		{"owner, to one that holds nothing", Owner, 5, Load{3000, 3}},
		{"learning", Learning, 1, Load{2000, 2}},
		{"learning, where more was told", Learning, 2, Load{1000, 5}},
		{"follower", Follower, 1, Load{70, 1}},
		{"follower, to one that told nothing", Follower, 2, Load{120, 5}},
		{"no such holder", Owner, MaxHolders, Load{3000, 3}},
	} {
		l.SetRole(0, c.role)
		if got := l.Others(c.asking, 0); got != own.plus(c.others) {
			t.Errorf("%s: %+v, want %+v", c.name, got, own.plus(c.others))
		}
	}
	l.SetRole(0, Follower)
	l.Note(0, Load{Novel: 100, Active: 1})
	if got := l.Others(1, 0); got != own.plus(Load{Novel: 50}) {
		t.Errorf("a note less what the asking node told, never below zero: %+v", got)
	}
	if got := l.Others(1, 99); got != (Load{}) {
		t.Errorf("a slot that nobody spoke of: %+v", got)
	}
}

func TestTellReplacesAndDropRemoves(t *testing.T) {
	l := New()
	l.SetRole(1, Follower)
	l.Tell(1, 1, Load{Novel: 10, Active: 1})
	l.Tell(1, 1, Load{Novel: 20, Active: 2})
	l.Tell(2, 1, Load{Novel: 1, Active: 1})
	if got := l.Load(1); got != (Load{Novel: 21, Active: 3}) {
		t.Errorf("told: %+v", got)
	}
	l.Tell(2, 1, Load{})
	grantTo(t, l, 1, 1, 0)
	l.Drop(1)
	l.Drop(1)
	if l.Load(0) != (Load{}) || l.Load(1) != (Load{}) || l.HeldBy(1) != 0 {
		t.Errorf("after the lease: %+v, %+v, %d held", l.Load(0), l.Load(1), l.HeldBy(1))
	}
}

func TestDropLeavesOthersAlone(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	grantTo(t, l, 1, 1, 0)
	grantTo(t, l, 2, 2, 0)
	l.Drop(1)
	l.Drop(Self)
	if got := l.Load(0); got != (Load{Novel: 2000, Active: 2}) || l.Held() != 1 || l.HeldBy(2) != 1 {
		t.Errorf("load %+v, own %d, of the other peer %d", got, l.Held(), l.HeldBy(2))
	}
}

func TestResetForgetsWhatAnyoneHeldOrTold(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	id := grantTo(t, l, 1, 1, 0)
	l.Tell(2, 0, Load{Active: 3})
	l.Note(0, Load{Active: 4})
	l.Reset(0)
	for _, role := range []Role{Owner, Learning, Follower} {
		l.SetRole(0, role)
		if got := l.Load(0); got != (Load{}) {
			t.Errorf("role %d: the new backend has %+v", role, got)
		}
	}
	if held := l.Holds(1, nil, nil); len(held) != 0 {
		t.Errorf("holds of the backend before are still listed: %+v", held)
	}
	l.SetRole(0, Owner)
	grantTo(t, l, 1, 2, 0)
	l.PrefilledFor(1, id)
	if !l.ReleaseFor(1, id) || l.Load(0) != (Load{Novel: 1000, Active: 1}) {
		t.Errorf("after the old hold's release: %+v", l.Load(0))
	}
}

func TestClaimsOfPeersNeverOverflow(t *testing.T) {
	l := New()
	huge := Load{Novel: math.MaxInt64, Active: math.MaxInt64}
	for h := Holder(1); h < MaxHolders; h++ {
		l.Tell(h, 0, huge)
		l.Adopt(h, Held{ID: ID{uint64(h), 0}, Slot: 0, Novel: math.MaxInt64})
	}
	l.Tell(Self, 0, huge)
	l.Tell(MaxHolders, 0, huge)
	l.Adopt(Self, Held{ID: ID{1, 1}, Slot: 0, Novel: math.MaxInt64})
	for _, note := range []bool{false, true} {
		if note {
			l.Note(0, huge)
		}
		for _, role := range []Role{Owner, Learning, Follower} {
			l.SetRole(0, role)
			if got := l.Load(0); got.Novel < l.Own(0).Novel || got.Active < l.Own(0).Active {
				t.Errorf("role %d, note %v: %+v", role, note, got)
			}
		}
	}
	l.Tell(1, 1, Load{Novel: -5, Active: -5})
	l.Note(2, Load{Novel: -5, Active: -5})
	l.SetRole(1, Follower)
	l.SetRole(2, Follower)
	if l.Load(1) != (Load{}) || l.Load(2) != (Load{}) {
		t.Errorf("negative claims count: %+v, %+v", l.Load(1), l.Load(2))
	}
}
