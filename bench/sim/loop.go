package sim

import (
	"container/heap"
	"context"
	"time"
)

// loop is virtual time: what is to happen, in the order of its time. What is
// due at the same moment happens in the order in which it was entered, so a run
// repeats itself exactly.
type loop struct {
	now      time.Duration
	sequence uint64
	due      agenda
}

// event is one thing that is to happen. It may be moved to another time as long
// as it has not happened.
type event struct {
	at       time.Duration
	sequence uint64
	place    int // in the agenda, absent where it is in none
	do       func()
}

const absent = -1

// at lets do happen at t, or now where t is over.
func (l *loop) at(t time.Duration, do func()) { l.move(&event{place: absent, do: do}, t) }

// after lets do happen when d has passed.
func (l *loop) after(d time.Duration, do func()) { l.at(l.now+d, do) }

// every lets do happen each interval, from the first on, for as long as the loop runs.
func (l *loop) every(interval time.Duration, do func()) {
	e := &event{place: absent}
	e.do = func() {
		do()
		l.move(e, l.now+interval)
	}
	l.move(e, l.now+interval)
}

// move sets the time of an event, whether it is on the agenda or not.
func (l *loop) move(e *event, t time.Duration) {
	l.sequence++
	e.at, e.sequence = max(t, l.now), l.sequence
	if e.place == absent {
		heap.Push(&l.due, e)
		return
	}
	heap.Fix(&l.due, e.place)
}

// drop takes an event off the agenda.
func (l *loop) drop(e *event) {
	if e.place != absent {
		heap.Remove(&l.due, e.place)
	}
}

// attention is how many events pass between two looks at the context.
const attention = 1 << 10

// run lets things happen until over says so, or nothing is left.
func (l *loop) run(ctx context.Context, over func() bool) error {
	for n := 0; len(l.due) > 0 && !over(); n++ {
		if n%attention == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e := heap.Pop(&l.due).(*event)
		l.now = e.at
		e.do()
	}
	return nil
}

// agenda is a heap of events, the next one first.
type agenda []*event

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].sequence < a[j].sequence
}

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

func (a *agenda) Push(x any) {
	e := x.(*event)
	e.place = len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	e.place = absent
	return e
}
