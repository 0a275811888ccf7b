package router

import (
	"container/heap"
	"fmt"
	"slices"
	"testing"
	"time"

	"kvca/state/cbr"
)

// session is one conversation that is held turn by turn.
type session struct {
	seed, turn int
	history    []string
	last       string
	at         time.Duration // when its next event is due
	ticket     *Ticket
}

// agenda orders sessions by their next event.
type agenda []*session

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(*session)) }
func (a *agenda) Pop() any          { s := (*a)[len(*a)-1]; *a = (*a)[:len(*a)-1]; return s }

// converse holds conversations of five turns in virtual time, so many at once,
// on backends that answer in 30 ms give or take a tenth, and returns the share of
// follow-ups on the backend of the turn before and the busiest backend's share
// over the mean.
func (g *rig) converse(conversations, atOnce, shared, turn int) (kept, most float64) {
	const turns = 5
	prompt := text(0, shared)
	served := map[string]int{}
	stayed, next := 0, 0
	var due agenda
	begin := func(at time.Duration) {
		if next++; next <= conversations {
			heap.Push(&due, &session{seed: next, history: []string{prompt}, at: at})
		}
	}
	for i := range atOnce {
		begin(time.Duration(i) * time.Millisecond / 10)
	}
	for len(due) > 0 {
		s := heap.Pop(&due).(*session)
		g.clock = s.at
		if s.ticket == nil {
			s.history = append(s.history, text(s.seed*100+s.turn, turn))
			phase := cbr.Bootstrap
			if s.turn > 0 {
				phase = cbr.FollowUp
			}
			s.ticket = g.route(request(phase, s.history...))
			s.at += 27*time.Millisecond + time.Duration(g.random.Int64N(int64(6*time.Millisecond)))
			heap.Push(&due, s)
			continue
		}
		s.ticket.Begin()
		s.ticket.Close()
		at := s.ticket.Backend.ID
		served[at]++
		if at == s.last {
			stayed++
		}
		s.last, s.ticket = at, nil
		s.history = append(s.history, "an answer")
		if s.turn++; s.turn < turns {
			s.at += time.Millisecond
			heap.Push(&due, s)
		} else {
			begin(g.clock)
		}
	}
	busiest := 0
	for _, n := range served {
		busiest = max(busiest, n)
	}
	return float64(stayed) / float64(conversations*(turns-1)), float64(busiest*len(g.members)) / float64(conversations*turns)
}

// The affinity table that routers are compared by: with no header from the
// client, follow-ups stay where the turn before was served, and load spreads, a
// shared system prompt or not, for turns shorter and longer than a block. At
// light load a shared prefix is copied late, since the one backend that has it
// can take it all; that is the rule's choice, and its bound is stated here too.
func TestFollowUpsStayAndLoadSpreads(t *testing.T) {
	for _, c := range []struct {
		atOnce, shared, turn int
		kept, most           float64
	}{
		{8, 0, 60, 0.98, 1.1},
		{8, 0, 800, 0.98, 1.1},
		{8, 4096, 300, 0.98, 2},
		{32, 0, 60, 0.98, 1.1},
		{32, 0, 300, 0.98, 1.1},
		{32, 0, 800, 0.98, 1.1},
		{32, 0, 3000, 0.98, 1.1},
		{32, 4096, 60, 0.98, 1.1},
		{32, 4096, 300, 0.98, 1.1},
		{32, 4096, 800, 0.98, 1.1},
		{32, 4096, 3000, 0.98, 1.1},
		{64, 4096, 300, 0.98, 1.1},
	} {
		t.Run(fmt.Sprintf("%d at once, %d shared, turns of %d", c.atOnce, c.shared, c.turn), func(t *testing.T) {
			var kept, most []float64
			for range 5 {
				k, m := newRig(t, 4, nil).converse(200, c.atOnce, c.shared, c.turn)
				kept, most = append(kept, k), append(most, m)
			}
			slices.Sort(kept)
			slices.Sort(most)
			t.Logf("kept %.3f, max/mean %.2f (medians of 5)", kept[2], most[2])
			if kept[2] < c.kept || most[2] > c.most {
				t.Errorf("kept %v, want %v or more; max/mean %v, want %v at most", kept, c.kept, most, c.most)
			}
		})
	}
}
