package cluster

import (
	"context"
	"math"
	"sync"
	"time"

	"kvca/cluster/wire"
	"kvca/state"
	"kvca/state/ledger"
	"kvca/state/ring"
)

// Loads books requests where the owners of the backends say. It is what the
// router reserves with.
//
// A node's own holds are all in its own ledger, whoever granted them: it is the
// authority on what it has under way. Owners have copies, to decide by.
type Loads struct{ c *Cluster }

// scratch is what one reservation works with.
type scratch struct {
	best  []ledger.Best
	order ledger.Order // the candidates of one owner
	index []int32      // their places in the whole order
	short []int32
	// offers are the candidates of the short list.
	offers []ledger.Candidate
	frame  []byte
	call   *call
}

// maxAsks is how often owners are asked with a bound; then comes one without.
const maxAsks = 8

// Reserve asks the owner that looks cheapest to choose and book in one step, and
// the next one where it refuses. It never fails: where the owners can't be asked
// within the budget it decides from what is known here and says so.
func (l *Loads) Reserve(ctx context.Context, o *ledger.Order) ledger.Grant {
	c := l.c
	v := c.view.Load()
	if v.alone() {
		g := c.cfg.Ledger.Reserve(o)
		g.Owner = c.cfg.Node
		return g
	}
	defer nudge(c.stir) // loads have changed
	s := c.scratches.Get().(*scratch)
	defer c.scratches.Put(s)
	if len(o.Candidates) == 1 {
		return c.take(v, o, 0, "") // nothing is to be decided
	}
	s.best = c.cfg.Ledger.Survey(o, v.ownerOf, s.best)
	a := &attempt{c: c, v: v, o: o, s: s, end: c.cfg.Now() + trust*c.cfg.OwnerBudget}
	if i, ok := a.clear(); ok {
		return c.take(v, o, i, "")
	}
	if g, ok := a.near(); ok {
		return g
	}
	return a.reserve(ctx)
}

// nearMargin is by how many active requests' worth a backend of this node's own may be
// busier than the cheapest, at no greater cost otherwise, to be booked on without a
// question. It is less than one, so requests are spread no less evenly: of backends
// that are equally busy, the one at hand is as good, and no round trip away. Of short
// conversations on 240 backends, eight nodes then cost 1.9 % of mean TTFT, news coming
// every 50 ms, and 2.4 % without.
const nearMargin = 0.9

// near books on one of this node's own backends where none is cheaper by much.
func (a *attempt) near() (g ledger.Grant, ok bool) {
	if a.v.self >= len(a.s.best) || a.s.best[a.v.self].Index < 0 {
		return g, false
	}
	place, _ := a.cheapest()
	own, best := &a.s.best[a.v.self], &a.s.best[place]
	unit := a.o.ActiveBytes
	if a.o.ByRequests {
		unit = 1
	}
	if place == a.v.self || a.o.Candidates[own.Index].Cost > a.o.Candidates[best.Index].Cost || own.Score-best.Score > nearMargin*unit*a.o.LoadScale {
		return g, false
	}
	a.gather(a.v.self)
	return a.own(math.Inf(1))
}

// clearMargin is by how many requests like this one the cheapest candidate must
// lead for its owner to be told rather than asked: so many would have to come to
// it from other nodes, unseen within the milliseconds that news takes, for another
// choice to be better. Follow-ups whose backend is not busy are the usual case.
// Larger, and more requests wait for an answer that changes nothing: of short
// conversations on 240 backends 45 % asked at 8, 24 % at 3, and eight nodes cost
// 2.6 and 1.5 % of mean TTFT. At 2 the load begins to be less even.
const clearMargin = 3

// clear is the candidate that leads so far that no fresher figure would change the
// choice, if there is one.
func (a *attempt) clear() (index int, ok bool) {
	place, next := a.cheapest()
	best := &a.s.best[place]
	cand := &a.o.Candidates[best.Index]
	unit := a.o.ActiveBytes + float64(cand.Novel)
	if a.o.ByRequests {
		unit = 1
	}
	return best.Index, min(next, best.Next)-best.Score >= clearMargin*unit*a.o.LoadScale*cand.Slowness
}

// attempt is one reservation in the making.
type attempt struct {
	c        *Cluster
	v        *view
	o        *ledger.Order
	s        *scratch
	end      time.Duration // when no owner is waited for any more
	extended bool          // a far owner has been waited for
	// uncertain did not answer in time and may have booked the request.
	uncertain *peer
}

func (a *attempt) reserve(ctx context.Context) ledger.Grant {
	for asks := 0; ; asks++ {
		place, bound := a.cheapest()
		if asks >= maxAsks {
			bound = math.Inf(1)
		}
		a.gather(place)
		if place == a.v.self {
			if g, ok := a.own(bound); ok {
				return g
			}
			continue
		}
		g, done, why := a.ask(ctx, place, bound)
		switch {
		case done:
			return g
		case why != "":
			return a.degraded(place, why)
		}
	}
}

// cheapest is the place of the owner with the least score, and the least score
// of the others. Equal owners are drawn by how many equal candidates they have, so
// that each candidate is as likely as any other.
func (a *attempt) cheapest() (place int, bound float64) {
	place, bound = a.v.owner(a.o.Candidates[0].Slot), math.Inf(1)
	score, equal, tie := math.Inf(1), uint64(0), a.o.Tie
	for i := range a.s.best {
		b := &a.s.best[i]
		switch {
		case b.Index < 0:
		case b.Score < score:
			bound = score
			place, score, equal = i, b.Score, uint64(b.Equal)
		case b.Score == score:
			bound = score
			equal += uint64(b.Equal)
			tie = ring.Mix(tie)
			if tie%equal < uint64(b.Equal) {
				place = i
			}
		default:
			bound = min(bound, b.Score)
		}
	}
	return place, bound
}

// gather makes the order of one owner's candidates.
func (a *attempt) gather(place int) {
	s := a.s
	candidates := s.order.Candidates[:0]
	s.order = *a.o
	s.order.Candidates, s.index = candidates, s.index[:0]
	for i := range a.o.Candidates {
		if a.v.owner(a.o.Candidates[i].Slot) == place {
			s.order.Candidates = append(s.order.Candidates, a.o.Candidates[i])
			s.index = append(s.index, int32(i))
		}
	}
}

// own reserves on a backend of this node's own.
func (a *attempt) own(bound float64) (ledger.Grant, bool) {
	g, ok := a.c.cfg.Ledger.ReserveFor(ledger.Self, &a.s.order, bound)
	if !ok {
		a.correct(a.v.self, g.Score)
		return g, false
	}
	a.c.metrics.reservations.own.Inc()
	g.Index, g.Owner = int(a.s.index[g.Index]), a.c.cfg.Node
	return g, true
}

// correct takes an owner's own word for its least score.
func (a *attempt) correct(place int, score float64) {
	b := &a.s.best[place]
	b.Score = max(score, b.Score)
	b.Equal = 1
}

// take books candidate i, which this node has chosen, and tells its owner.
func (c *Cluster) take(v *view, o *ledger.Order, i int, degraded string) ledger.Grant {
	cand := &o.Candidates[i]
	h := ledger.Held{ID: o.ID, Slot: cand.Slot, Novel: max(cand.Novel, 0)}
	g := ledger.Grant{Index: i, Score: c.cfg.Ledger.Score(o, i), Owner: v.names[v.owner(cand.Slot)]}
	g.Booked = c.cfg.Ledger.Adopt(ledger.Self, h)
	c.tellHeld(v, h)
	if degraded != "" {
		g.Degraded, g.Owner = true, c.cfg.Node
		c.metrics.reservations.degraded.WithLabelValues(degraded).Inc()
		c.count.degraded.Add(1)
		return g
	}
	c.metrics.reservations.clear.Inc()
	return g
}

// degraded chooses without an owner's help: of two good candidates, drawn at
// random, the better one. The least of a stale view would be the same for every
// node, and all would go there at once.
func (a *attempt) degraded(place int, why string) ledger.Grant {
	best := &a.o.Candidates[a.s.best[place].Index]
	limit := best.Cost + a.o.ActiveBytes
	good := a.s.index[:0]
	for i := range a.o.Candidates {
		if a.o.Candidates[i].Cost <= limit {
			good = append(good, int32(i))
		}
	}
	a.s.index = good
	n := uint64(len(good))
	first := int(good[a.c.cfg.Rand()%n])
	second := int(good[a.c.cfg.Rand()%n])
	if a.c.cfg.Ledger.Score(a.o, second) < a.c.cfg.Ledger.Score(a.o, first) {
		first = second
	}
	g := a.c.take(a.v, a.o, first, why)
	if p := a.uncertain; p != nil && p != a.v.peer(a.o.Candidates[first].Slot) {
		a.c.tellChange(p, wire.OpReleased, &wire.Hold{ID: a.o.ID})
	}
	return g
}

// Peek chooses by what is known here and books nothing.
func (l *Loads) Peek(o *ledger.Order) ledger.Grant {
	g := l.c.cfg.Ledger.Peek(o)
	v := l.c.view.Load()
	g.Owner = v.names[v.owner(o.Candidates[g.Index].Slot)]
	return g
}

// Prefilled gives the novel-block load of a reservation back, here and at its
// owner.
func (l *Loads) Prefilled(id ledger.ID) bool {
	s, held := l.c.cfg.Ledger.Where(id)
	ok := l.c.cfg.Ledger.Prefilled(id)
	if held && ok {
		l.c.tellPrefilled(s, id)
		nudge(l.c.stir)
	}
	return ok
}

// Release gives all back that a reservation still holds, here and at its owner.
func (l *Loads) Release(id ledger.ID) bool {
	s, held := l.c.cfg.Ledger.Where(id)
	ok := l.c.cfg.Ledger.Release(id)
	if held {
		l.c.tellReleased(s, id)
		nudge(l.c.stir)
	}
	return ok
}

// Load is the whole cluster's on slot s, as far as it is known here.
func (l *Loads) Load(s state.Slot) ledger.Load { return l.c.cfg.Ledger.Load(s) }

// Reset makes a slot a new backend without load.
func (l *Loads) Reset(s state.Slot) { l.c.cfg.Ledger.Reset(s) }

func newScratches() sync.Pool {
	return sync.Pool{New: func() any { return &scratch{call: newCall()} }}
}
