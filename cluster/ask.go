package cluster

import (
	"context"
	"slices"
	"sync"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/ledger"
)

// Why a decision is degraded: a closed set, since metrics use it as a label.
const (
	whyDown     = "down"     // there is no link to the owner
	whyHung     = "hung"     // it did not answer lately, and is not asked for a moment
	whyTimeout  = "timeout"  // it did not answer within the budget
	whyBusy     = "busy"     // its link takes no more
	whyDisputed = "disputed" // it does not think that it owns the backends
	whyGone     = "gone"     // the client went meanwhile
)

// calls are the reservations that this node has asked one owner for. An id stays
// among them until its grant is booked here, so that a held set which is told
// meanwhile does not take it away from the owner.
type calls struct {
	mu      sync.Mutex
	waiting map[ledger.ID]*call
}

// call is one question under way. It is used again for the next one.
type call struct {
	answered chan struct{} // gets one element when the answer is there, or none will come

	// What follows belongs to calls.mu until the question has ended.
	done    bool
	granted bool
	answer  wire.Answer
	figures []wire.Figure
}

func newCall() *call { return &call{answered: make(chan struct{}, 1)} }

// begin sends the question and waits for nothing. Registration and sending are
// one step for those who tell held sets.
func (s *calls) begin(p *peer, id ledger.ID, k *call, frame []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.send(link.Urgent, wire.Reserve, frame) {
		return false
	}
	if s.waiting == nil {
		s.waiting = make(map[ledger.ID]*call)
	}
	k.done = false
	s.waiting[id] = k
	return true
}

// end forgets the question, so that nobody touches its call any more, and says
// whether it has been answered meanwhile.
func (s *calls) end(id ledger.ID, k *call) (answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
	select {
	case <-k.answered:
	default:
	}
	return k.done
}

// abandon ends all waiting: the link is down, and with it what was to be answered.
func (s *calls) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.waiting {
		if !k.done {
			nudge(k.answered)
		}
	}
}

// has is whether the call that is waited for no more has its answer.
func (s *calls) has(k *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.done
}

// deliver hands an answer to whoever waits for it.
func (s *calls) deliver(granted bool, r *wire.Reader) {
	a, n := r.Answer()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.waiting[a.ID]
	if k == nil || k.done {
		return
	}
	k.granted, k.answer, k.figures = granted, a, k.figures[:0]
	for range n {
		k.figures = append(k.figures, r.Figure())
	}
	if k.done = !r.Bad(); k.done {
		nudge(k.answered)
	}
}

// ask asks an owner. done says that the request is booked; why, that this owner
// can't be had; neither, that it refused and its score has been corrected.
func (a *attempt) ask(ctx context.Context, place int, bound float64) (g ledger.Grant, done bool, why string) {
	c, p, k := a.c, a.v.peers[place], a.s.call
	now := c.cfg.Now()
	if p == nil {
		return g, false, whyDown
	}
	far, tooFar := p.far()
	switch {
	case p.connected() == nil:
		return g, false, whyDown
	case tooFar:
		return g, false, whyTimeout
	case p.patience.hung(now):
		return g, false, whyHung
	case now >= a.end:
		return g, false, whyTimeout
	}
	if far > a.end-now && !a.extended {
		a.end, a.extended = now+2*far, true // once: further owners share what is left
	}
	limit := min(max(p.patience.limit(c.cfg.OwnerBudget), far), a.end-now)
	a.question(bound)
	if !p.calls.begin(p, a.o.ID, k, a.s.frame) {
		return g, false, whyBusy
	}
	switch c.waiter.wait(ctx, k.answered, limit) {
	case tooLong:
		why = whyTimeout
	case cancelled:
		why = whyGone
	case signalled:
		if !p.calls.has(k) {
			why = whyDown
		}
	}
	if why != "" && !p.calls.end(a.o.ID, k) {
		if a.uncertain = p; why == whyTimeout {
			p.patience.missed(now, c.cfg.Now())
		}
		return g, false, why
	}
	c.metrics.ownerCall.Observe((c.cfg.Now() - now).Seconds())
	g, done, why = a.answered(place, k)
	p.calls.end(a.o.ID, k) // now that it is booked here
	return g, done, why
}

// answered takes an owner's answer.
func (a *attempt) answered(place int, k *call) (g ledger.Grant, done bool, why string) {
	for i := range k.figures {
		if e := a.c.backends.of(k.figures[i].Key); e != nil {
			a.c.cfg.Ledger.Note(e.slot, k.figures[i].Load)
		}
	}
	if !k.granted {
		a.c.metrics.refusals.Inc()
		a.c.count.refused.Add(1)
		if k.answer.Refusal != wire.AboveBound {
			return g, false, whyDisputed
		}
		a.correct(place, k.answer.Score)
		return g, false, ""
	}
	i := a.find(k.answer.Key)
	if i < 0 {
		return g, false, whyDisputed
	}
	cand := &a.o.Candidates[i]
	booked := a.c.cfg.Ledger.Adopt(ledger.Self, ledger.Held{ID: a.o.ID, Slot: cand.Slot, Novel: max(cand.Novel, 0)})
	a.c.metrics.reservations.granted.Inc()
	return ledger.Grant{Index: i, Score: k.answer.Score, Booked: booked, Owner: a.v.names[place]}, true, ""
}

// find is the place of the backend of that key in the whole order, -1 for none.
func (a *attempt) find(key uint64) int {
	e := a.c.backends.of(key)
	if e == nil {
		return -1
	}
	return slices.IndexFunc(a.o.Candidates, func(c ledger.Candidate) bool { return c.Slot == e.slot })
}

// maxOffers is how many candidates an owner is offered: its cheapest ones. With
// more of them the question would take longer than the choice is worth.
const maxOffers = 64

// question writes the frame that asks the owner of the gathered candidates.
func (a *attempt) question(bound float64) {
	offers := a.s.order.Candidates
	if len(offers) > maxOffers {
		offers = a.shortlist()
	}
	ask := wire.Ask{
		ID: a.o.ID, Bound: bound, ActiveBytes: a.o.ActiveBytes, LoadScale: a.o.LoadScale,
		ByRequests: a.o.ByRequests, Tie: a.o.Tie,
	}
	b := wire.AppendAsk(a.s.frame[:0], &ask, len(offers))
	for i := range offers {
		cand, key := &offers[i], uint64(0)
		if e := a.c.backends.at(cand.Slot); e != nil {
			key = e.key
		}
		b = wire.AppendOffer(b, &wire.Offer{
			Key: key, Cost: cand.Cost, Slowness: cand.Slowness, Bypass: cand.Bypass, Novel: cand.Novel,
		})
	}
	a.s.frame = b
}

// shortlist is the cheapest candidates, drawn among equals by the tie.
func (a *attempt) shortlist() []ledger.Candidate {
	s, list := a.s, a.s.order.Candidates
	s.short = a.c.cfg.Ledger.Shortlist(&s.order, maxOffers, int(a.o.Tie%uint64(len(list))), s.short[:0])
	s.offers = s.offers[:0]
	for _, i := range s.short {
		s.offers = append(s.offers, list[i])
	}
	return s.offers
}
