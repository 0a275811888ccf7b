package quota

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drain(o *Owner, now time.Duration, l Limit) (n int64) {
	for seq := uint64(1); ; seq++ {
		g := o.Grant(now, 1, &Ask{Seq: seq, Limit: l, Need: Amount{Requests: 1}, Want: Amount{Requests: 1}})
		if g.Given.Requests == 0 {
			return n
		}
		n += g.Given.Requests
	}
}

func TestNewOwnerStartsEmptyAndFills(t *testing.T) {
	l := Limit{Requests: 100}
	if n := drain(NewOwner(time.Minute), time.Minute, l); n != 0 {
		t.Errorf("%d given at once", n)
	}
	if n := drain(NewOwner(time.Minute), time.Minute+500*time.Millisecond, l); n != 50 {
		t.Errorf("%d given after half a second, want 50", n)
	}
	if n := drain(NewOwner(0), time.Hour, l); n != 110 {
		t.Errorf("%d given by one of long ago, want 110", n)
	}
}

func TestNewOwnerGivesFewSlotsUntilAllHaveTold(t *testing.T) {
	for slots, few := range map[int]int{4: 1, 160: 10} {
		o, l := NewOwner(0), Limit{Concurrent: slots}
		ask := func(seq uint64, held int) int {
			g := o.Grant(0, 1, &Ask{Seq: seq, Limit: l, Held: held, Need: Amount{Slots: 1}, Want: Amount{Slots: 1}})
			return g.Given.Slots
		}
		got := 0
		for seq := uint64(1); seq < 100; seq++ {
			got += ask(seq, got)
		}
		if got != few {
			t.Errorf("%d of %d slots given, want %d", got, slots, few)
		}
		o.Told(0, 2, &Report{Held: slots - got - 1})
		o.Learned()
		if n := ask(100, got); n != 1 {
			t.Errorf("the last of %d slots is not given", slots)
		}
		if n := ask(101, got+1); n != 0 {
			t.Errorf("more than %d slots are given", slots)
		}
		o.Drop(2)
		if n := ask(102, got+1); n != 1 {
			t.Error("slots of a dead holder are not given again")
		}
	}
}

// Reports and answers cross; what the owner believes is what the holder has when all
// has come.
func TestClaimsAreWhatHoldersHave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, h, l := NewOwner(0), &Holder{}, Limit{Concurrent: 5}
		o.Learned()
		h.Demand(0, l, 1)
		var there, back []func() // messages under way, in order
		now := time.Duration(0)
		deliver := func(q *[]func()) {
			if len(*q) > 0 {
				(*q)[0]()
				*q = (*q)[1:]
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += time.Millisecond
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				if !h.Take(now, 1) && !h.Asking() {
					a := h.Ask(now, 1, Amount{})
					there = append(there, func() {
						g := o.Grant(now, 1, &a)
						back = append(back, func() { h.Apply(now, &g) })
					})
				}
			case 2:
				h.Release(now)
			case 3:
				r, _ := h.Return(now)
				there = append(there, func() { o.Told(now, 1, &r) })
			case 4:
				h.GiveUp()
			case 5:
				deliver(&there)
			case 6:
				deliver(&back)
			}
			if i := o.find(1); len(there) == 0 && i >= 0 && o.claims[i].slots < h.inUse {
				t.Fatalf("the owner knows of %d slots, %d are in use", o.claims[i].slots, h.inUse)
			}
		}
		for len(there)+len(back) > 0 {
			deliver(&there)
			deliver(&back)
		}
		r := h.Report(Amount{})
		o.Told(now, 1, &r)
		if i := o.find(1); h.slots > 0 && (i < 0 || o.claims[i].slots != h.slots) || h.slots > 5 {
			t.Fatalf("the owner knows of %+v, the holder has %d", o.claims, h.slots)
		}
	})
}

func TestWhatAnotherOwnerGaveIsUsedUpAndNotGivenBack(t *testing.T) {
	h := &Holder{}
	h.Demand(0, Limit{Requests: 100}, 1)
	a := h.Ask(0, 1, Amount{})
	h.Apply(0, &Grant{Seq: a.Seq, Limit: a.Limit, Given: Amount{Requests: 3}})
	h.Moved(0)
	if !h.Take(time.Millisecond, 1) {
		t.Error("what is in hand can't be used")
	}
	if r, ok := h.Return(time.Second); ok || h.InHand() {
		t.Errorf("%+v is given back to who did not give it, %+v is left", r, h)
	}
	h.Apply(time.Second, &Grant{Seq: a.Seq, Given: Amount{Requests: 3}})
	if h.InHand() {
		t.Error("an answer of the owner before is taken")
	}
}

func TestOwnerGoesByItsOwnLimit(t *testing.T) {
	o := NewOwner(0)
	now := time.Hour
	ask := func(holder uint8, limit float64) float64 {
		g := o.Grant(now, holder, &Ask{Seq: uint64(now), Limit: Limit{Requests: limit}})
		return g.Limit.Requests
	}
	if got := ask(1, 10); got != 10 {
		t.Errorf("limit %v, want the asker's, since there is no other", got)
	}
	ask(Self, 20)
	if got := ask(1, 10); got != 20 {
		t.Errorf("limit %v, want the owner's own", got)
	}
	now += 2 * ownFor
	if got := ask(1, 10); got != 10 {
		t.Errorf("limit %v, want the asker's: the owner has not used its own for long", got)
	}
}

func TestSharesAddUpToTheLimit(t *testing.T) {
	l := Limit{Requests: 80, Concurrent: 16}
	total := 0
	for range 8 {
		var b Book
		inUse := 0
		for now := time.Minute; now < time.Minute+10*time.Second; now += time.Millisecond {
			if v := b.Share(now, l.Share(8), 0, 1); v.OK {
				total++
			} else if !v.Degraded || v.Why != Requests || v.RetryAfter <= 0 {
				t.Fatalf("%+v", v)
			}
		}
		for b.Take(2*time.Minute, Limit{Concurrent: 16}.Share(8), inUse, 1).OK {
			inUse++
		}
		if inUse != 2 {
			t.Errorf("%d at once, want 2", inUse)
		}
	}
	if !within(float64(total), 800, 0.05) {
		t.Errorf("%d admitted in 10 s, want about 800", total)
	}
}

func TestBookOfALoneNodeStartsFull(t *testing.T) {
	var b Book
	l := Limit{Requests: 10, Burst: 2 * time.Second}
	b.Full(0, l)
	n := 0
	for b.Take(0, l, 0, 1).OK {
		n++
	}
	if n != 21 {
		t.Errorf("%d at once, want 21: two seconds and the tenth", n)
	}
	if v := b.Take(0, l, 0, 1); v.RetryAfter != 100*time.Millisecond || v.Degraded {
		t.Errorf("%+v, want a retry after 100 ms", v)
	}
	b.Settle(0, l, 1, 0)
	if !b.Take(0, l, 0, 1).OK {
		t.Error("what was given back is not there")
	}
}
