package ledger

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"kvca/state"
)

func order(id uint64, slots ...state.Slot) *Order {
	o := &Order{ID: ID{id, 1}, ActiveBytes: 512, LoadScale: 1, Tie: id}
	for _, s := range slots {
		o.Candidates = append(o.Candidates, Candidate{Slot: s, Slowness: 1, Novel: 1000})
	}
	return o
}

func TestReserveChoosesTheLeastLoaded(t *testing.T) {
	l := New()
	seen := map[state.Slot]int{}
	for i := range uint64(40) {
		o := order(i, 0, 1, 2, 3)
		seen[o.Candidates[l.Reserve(o).Index].Slot]++
	}
	for s := range state.Slot(4) {
		if seen[s] != 10 {
			t.Errorf("slot %d got %d of 40 equal requests, want 10: %v", s, seen[s], seen)
		}
	}
}

func TestTiesAreBrokenEvenly(t *testing.T) {
	l := New()
	seen := map[int]int{}
	for i := range uint64(8000) {
		seen[l.Peek(order(i*7919, 0, 1, 2, 3)).Index]++
	}
	for i := range 4 {
		if seen[i] < 1800 || seen[i] > 2200 {
			t.Errorf("candidate %d was chosen %d of 8000 times among four equals", i, seen[i])
		}
	}
}

func TestLoadIsScaledBySpeedBypassAndCost(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Order)
		want int
	}{
		{"cost", func(o *Order) { o.Candidates[0].Cost = 1 }, 1},
		{"bypass", func(o *Order) { o.Candidates[0].Bypass = 3 }, 1},
		{"speed", func(o *Order) {
			o.Candidates[0].Bypass, o.Candidates[0].Slowness = 3, 0.25
			o.Candidates[1].Bypass, o.Candidates[1].Slowness = 1, 1
		}, 0},
		{"scale zero leaves the cost", func(o *Order) {
			o.LoadScale = 0
			o.Candidates[0].Bypass, o.Candidates[1].Cost = 9, 1
		}, 0},
		{"by requests", func(o *Order) {
			o.ByRequests = true
			o.Candidates[0].Bypass = 1
		}, 1},
	} {
		o := order(1, 0, 1)
		c.edit(o)
		if g := New().Reserve(o); g.Index != c.want {
			t.Errorf("%s: chose candidate %d, want %d", c.name, g.Index, c.want)
		}
	}
}

func TestPeekBooksNothing(t *testing.T) {
	l := New()
	l.Peek(order(1, 0))
	if l.Held() != 0 || l.Load(0) != (Load{}) {
		t.Errorf("after Peek: held %d, load %+v", l.Held(), l.Load(0))
	}
}

func TestNovelLoadGoesFirstThenTheRequest(t *testing.T) {
	l := New()
	l.Reserve(order(1, 5))
	if got := l.Load(5); got != (Load{Novel: 1000, Active: 1}) {
		t.Fatalf("after Reserve: %+v", got)
	}
	if !l.Prefilled(ID{1, 1}) || l.Prefilled(ID{1, 1}) {
		t.Error("Prefilled gives back exactly once")
	}
	if got := l.Load(5); got != (Load{Active: 1}) {
		t.Fatalf("after Prefilled: %+v", got)
	}
	if !l.Release(ID{1, 1}) || l.Release(ID{1, 1}) {
		t.Error("Release gives back exactly once")
	}
	if got := l.Load(5); got != (Load{}) {
		t.Fatalf("after Release: %+v", got)
	}
}

func TestReleaseBeforeReserveBooksNothing(t *testing.T) {
	l := New()
	l.Release(ID{1, 1})
	if g := l.Reserve(order(1, 0)); g.Booked {
		t.Error("a reservation that comes after its release must not be booked")
	}
	if l.Load(0) != (Load{}) || l.Counters().Late != 1 {
		t.Errorf("load %+v, counters %+v", l.Load(0), l.Counters())
	}
}

func TestReserveTwiceAnswersTheSame(t *testing.T) {
	l := New()
	first := order(1, 0, 1, 2, 3)
	slot := first.Candidates[l.Reserve(first).Index].Slot
	again := order(1, 3, 2, 1, 0)
	again.Tie = 99
	if got := again.Candidates[l.Reserve(again).Index].Slot; got != slot {
		t.Errorf("the same id got slot %d, then %d", slot, got)
	}
	if l.Load(slot).Active != 1 {
		t.Errorf("booked %d times", l.Load(slot).Active)
	}
}

func TestResetSlotForgetsTheBackendBefore(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	l.Reset(0)
	l.Reserve(order(2, 0))
	l.Release(ID{1, 1})
	if got := l.Load(0); got != (Load{Novel: 1000, Active: 1}) {
		t.Errorf("the new backend's load is %+v after the old one's release", got)
	}
}

func TestConcurrentReservationsStayIndivisible(t *testing.T) {
	l := New()
	var wg sync.WaitGroup
	for w := range uint64(8) {
		wg.Go(func() {
			for i := range uint64(100) {
				l.Reserve(order(w*1000+i, 0, 1, 2, 3, 4, 5, 6, 7))
			}
		})
	}
	wg.Wait()
	for s := range state.Slot(8) {
		if got := l.Load(s).Active; got != 100 {
			t.Errorf("slot %d holds %d of 800 requests, want 100", s, got)
		}
	}
}

// Messages about a few ids arrive lost, doubled and in any order: no total is
// ever negative, each equals what the live holds add up to, and when the holder
// has told what it really holds (nothing), all are zero.
func TestTotalsSurviveLossDuplicationAndReordering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New()
		for range rapid.IntRange(1, 120).Draw(t, "messages") {
			id := ID{rapid.Uint64Range(0, 9).Draw(t, "id"), 1}
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0, 1:
				o := order(id[0], 0, 1, 2)
				o.Candidates[0].Novel = rapid.Int64Range(-5, 5000).Draw(t, "novel")
				l.Reserve(o)
			case 2:
				l.Prefilled(id)
			case 3:
				l.Release(id)
			case 4:
				if rapid.IntRange(0, 9).Draw(t, "reset") == 0 {
					l.Reset(state.Slot(id[0] % 3))
				}
			}
			check(t, l)
		}
		if rapid.Bool().Draw(t, "all releases arrive") {
			for id := range uint64(10) {
				l.Release(ID{id, 1})
			}
		} else {
			l.Replace(Self, nil, nil)
		}
		check(t, l)
		for s := range state.Slot(3) {
			if got := l.Load(s); got != (Load{}) {
				t.Fatalf("slot %d ends with %+v", s, got)
			}
		}
	})
}

// check compares every sum with what it should be the sum of.
func check(t *rapid.T, l *Ledger) {
	granted, told, live := make([]Load, len(l.rows)), make([]Load, len(l.rows)), 0
	for h, holder := range l.holders {
		if holder == nil {
			continue
		}
		booked := make([]Load, len(l.rows))
		for _, n := range holder.holds {
			if l.current(n) {
				booked[n.slot] = booked[n.slot].plus(n.load())
			}
		}
		for s := range l.rows {
			slot := state.Slot(s)
			if got := at(holder.booked, slot); got != booked[s] || got.Active < 0 || got.Novel < 0 {
				t.Fatalf("slot %d: %+v is booked for %d, its holds add up to %+v", s, got, h, booked[s])
			}
			told[s] = told[s].plus(at(holder.told, slot))
			if Holder(h) != Self {
				granted[s] = granted[s].plus(booked[s])
			}
		}
		if Holder(h) != Self {
			live += len(holder.holds)
		}
	}
	if l.forPeers != live {
		t.Fatalf("%d holds of peers are counted, there are %d", l.forPeers, live)
	}
	for s := range l.rows {
		checkRow(t, l, state.Slot(s), granted[s], told[s])
	}
}

func checkRow(t *rapid.T, l *Ledger, s state.Slot, granted, told Load) {
	r := l.rows[s]
	if r.granted != granted || r.told != told {
		t.Fatalf("slot %d: granted %+v, want %+v; told %+v, want %+v", s, r.granted, granted, r.told, told)
	}
	own := l.Own(s)
	if view := l.Load(s); view != own.plus(r.others()) || view.Active < own.Active || view.Novel < own.Novel {
		t.Fatalf("slot %d: seen %+v, own %+v, others %+v", s, view, own, r.others())
	}
	for h := range Holder(MaxHolders) {
		if o := l.Others(h, s); o.Active < 0 || o.Novel < 0 {
			t.Fatalf("slot %d: beyond %d's own: %+v", s, h, o)
		}
	}
}

func TestReplaceTakesThePlaceOfWhatWasHeld(t *testing.T) {
	l := New()
	l.Reserve(order(1, 0))
	l.Reserve(order(2, 0))
	held := []Held{{ID: ID{2, 1}, Slot: 0, Novel: 7, Prefilled: true}, {ID: ID{3, 1}, Slot: 1, Novel: 9}, {ID: ID{3, 1}, Slot: 1, Novel: 9}}
	for range 2 {
		l.Replace(Self, held, nil)
		if l.Load(0) != (Load{Active: 1}) || l.Load(1) != (Load{Novel: 9, Active: 1}) {
			t.Errorf("loads %+v and %+v", l.Load(0), l.Load(1))
		}
	}
}

func TestRecentReleasesAreBounded(t *testing.T) {
	r := newRecent()
	for i := range uint64(5 * forgetAfter) {
		r.add(ID{i, 0})
	}
	if n := len(r.young) + len(r.old); n > 2*forgetAfter {
		t.Errorf("%d ids remembered, at most %d allowed", n, 2*forgetAfter)
	}
	if !r.has(ID{4*forgetAfter + 1, 0}) || r.has(ID{1, 0}) {
		t.Error("the latest releases are remembered, the oldest are not")
	}
}

func BenchmarkReserveRelease(b *testing.B) {
	for _, n := range []int{8, 64, 1000, 4000} {
		b.Run(fmt.Sprintf("candidates=%d", n), func(b *testing.B) {
			l := New()
			o := order(0)
			for s := range n {
				o.Candidates = append(o.Candidates, Candidate{Slot: state.Slot(s), Slowness: 1, Novel: 1000})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				o.ID, o.Tie = ID{uint64(i), 2}, uint64(i)
				l.Reserve(o)
				l.Prefilled(o.ID)
				l.Release(o.ID)
			}
		})
	}
}
