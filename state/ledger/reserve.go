package ledger

import (
	"math"

	"kvca/state"
	"kvca/state/ring"
)

// Candidate is one backend that a reservation may go to.
type Candidate struct {
	// Cost is what choosing this backend costs beyond its load, in bytes of CBR.
	Cost float64
	// Slowness multiplies the backend's load: 1 over its speed relative to others.
	Slowness float64
	// Novel is the prefill work in bytes of CBR that would be booked on it.
	Novel int64
	// Bypass is how many requests its engine runs beyond those booked here.
	Bypass int64
	// Ref is the caller's own: nothing here looks at it.
	Ref  int32
	Slot state.Slot
}

// Order asks for one reservation.
type Order struct {
	ID         ID
	Candidates []Candidate
	// ActiveBytes is what one active request weighs, in bytes of CBR.
	ActiveBytes float64
	// LoadScale multiplies the load before the candidate's cost is added: 1 for
	// costs in bytes, 0 where load shall not matter.
	LoadScale float64
	// ByRequests makes the number of active requests the load, not bytes.
	ByRequests bool
	// Tie chooses among equals: any number, at random. Without it the order of
	// candidates would decide, and every node would pick the same one.
	Tie uint64
}

// Grant says what a reservation got.
type Grant struct {
	// Index is the chosen candidate's place in Order.Candidates.
	Index int
	// Score is the least score: scaled load plus cost, before booking.
	Score float64
	// Booked is false where the id was released before, or the ledger was full.
	Booked bool
	// Owner is the node that decided. Who books fills it in, the ledger does not.
	Owner string
	// Degraded is true where the owner could not be asked in time.
	Degraded bool
}

// Reserve chooses the candidate with the least score and books the request on
// it for this node, indivisibly. An id that is already held gets the same answer
// again and is not booked twice; where its backend is no longer among the
// candidates, the hold moves to the one that is chosen now. There must be at least
// one candidate.
func (l *Ledger) Reserve(o *Order) Grant {
	g, _ := l.ReserveFor(Self, o, math.Inf(1))
	return g
}

// ReserveFor is Reserve for holder h, if the least score is at most bound. Where it
// is not it returns false and books nothing; likewise, with an Index of -1, where
// there is no candidate or can be no such holder. True says that the request may
// go to the candidate, whether or not it could be booked.
func (l *Ledger) ReserveFor(h Holder, o *Order, bound float64) (Grant, bool) {
	if len(o.Candidates) == 0 || h >= MaxHolders {
		return Grant{Index: -1}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.enter(h)
	was, held := t.holds[o.ID]
	if held && l.current(was) {
		if i := indexOf(o.Candidates, was.slot); i >= 0 {
			return Grant{Index: i, Booked: true}, true
		}
	}
	g := l.choose(o)
	if g.Score > bound {
		return g, false
	}
	c := &o.Candidates[g.Index]
	g.Booked = l.set(h, t, o.ID, l.newHold(c.Slot, c.Novel), was, held)
	if g.Booked {
		l.counters.granted(h)
	}
	return g, true
}

// Peek chooses as Reserve would and books nothing.
func (l *Ledger) Peek(o *Order) Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.choose(o)
}

// choose is one pass over the candidates; equal scores are sampled evenly.
func (l *Ledger) choose(o *Order) Grant {
	views := l.views
	best, least, equal := 0, score(views, o, &o.Candidates[0]), uint64(1)
	tie := o.Tie
	for i := 1; i < len(o.Candidates); i++ {
		s := score(views, o, &o.Candidates[i])
		if s > least {
			continue
		}
		if s < least {
			best, least, equal = i, s, 1
			continue
		}
		equal++
		tie = ring.Mix(tie)
		if tie%equal == 0 {
			best = i
		}
	}
	return Grant{Index: best, Score: least}
}

// score is the candidate's cost and its load's.
func score(views []Load, o *Order, c *Candidate) float64 {
	load := at(views, c.Slot)
	load.Active += c.Bypass
	weight := float64(load.Active)
	if !o.ByRequests {
		weight = load.Bytes(o.ActiveBytes)
	}
	return o.LoadScale*weight*c.Slowness + c.Cost
}

func indexOf(candidates []Candidate, s state.Slot) int {
	for i := range candidates {
		if candidates[i].Slot == s {
			return i
		}
	}
	return -1
}
