package router

import (
	"slices"

	"kvca/state"
	"kvca/state/ledger"
)

// decide lets the policy write the order. A pin and the last resort come before
// any policy. It returns false where there is nobody to choose.
func (q *question) decide(p policy) bool {
	if len(q.eligible) == 0 {
		return false
	}
	if q.req.Pin != nil {
		if i := slices.Index(q.eligible, q.req.Pin); i >= 0 {
			q.offer(i, 0)
			return true
		}
	}
	p.order(q)
	return true
}

// ticket turns a grant into what the request carries on with.
func (q *question) ticket(m *model, g ledger.Grant) *Ticket {
	r, req := q.router, q.req
	chosen := int(q.order.Candidates[g.Index].Ref)
	b := q.eligible[chosen]
	t := &Ticket{
		Decision: q.decision(g, chosen), Backend: b,
		router: r, model: m, chain: req.Chain, id: q.order.ID, bytes: req.Bytes,
		generation: r.locations.Generation(b.Slot),
		teaches:    !req.SkipsCache && len(req.Chain)+len(req.Marks) > 0,
	}
	if n := len(req.Marks); n > 0 {
		t.mark = req.Marks[n-1].Hash
	}
	if q.mark.bytes > 0 && q.mark.heldBy(b.Slot) {
		t.before = q.mark.single[0]
	}
	if req.Detail {
		t.Decision.Candidates = q.candidates(q.eligible, b.ID)
	}
	matched := 0
	if !req.SkipsCache {
		matched = q.walk.Matched(b.Slot)
	}
	t.matched = matched
	if t.teaches && (matched == 0 || len(req.Chain)-matched > r.cfg.ExpectAbove) {
		t.expected = r.locations.Expect(b.Slot, req.Chain)
	}
	t.predicted = unpredicted
	if q.indexed(chosen) && req.Index.Whole {
		t.predicted = int64(t.Decision.PredictedTokens)
	}
	t.announce(matched)
	return t
}

// decision records that the eligible backend i was chosen.
func (q *question) decision(g ledger.Grant, i int) Decision {
	b, matched := q.eligible[i], 0
	if !q.req.SkipsCache {
		matched = q.walk.Matched(b.Slot)
	}
	d := Decision{
		Phase: q.phase.String(), Policy: q.router.PolicyOf(q.req.Model), Reason: q.reason(i),
		ChainBlocks: q.chainBlocks(), MatchedBlocks: matched, NovelBlocks: q.chainBlocks() - matched,
		Backend: b.ID, Owner: g.Owner, Degraded: g.Degraded, BlockUnit: unitCBR,
	}
	switch {
	case q.req.Fallback != "":
		d.Index, d.Fallback = indexFallback, q.req.Fallback
	case len(q.known) > 0 && q.req.Index.Whole:
		d.Index = indexWhole
	case len(q.known) > 0:
		d.Index = indexBeginning
	}
	if q.indexed(i) {
		q.tokenBlocks(&d, i)
	}
	return d
}

// reason names the branch by which the eligible backend i was chosen.
func (q *question) reason(i int) Reason {
	switch {
	case q.lastResort:
		return ReasonLastResort
	case q.req.Pin != nil && q.eligible[i] == q.req.Pin:
		return ReasonPinned
	case !q.router.models.get(q.req.Model).rule().looks():
		return ReasonPolicy
	case q.chainBlocks() == 0 && len(q.req.Marks) == 0 && len(q.known) == 0:
		return ReasonNoChain
	}
	switch {
	case q.longest == 0:
		return ReasonMiss
	case q.held[i] < q.longest:
		return ReasonLoadOverride
	default:
		return ReasonHit
	}
}

// candidates lists what the decision thought of each member.
func (q *question) candidates(members []*Backend, chosen string) []Candidate {
	offered := make(map[state.Slot]*ledger.Candidate, len(q.order.Candidates))
	for i := range q.order.Candidates {
		offered[q.order.Candidates[i].Slot] = &q.order.Candidates[i]
	}
	list := make([]Candidate, 0, len(members))
	for _, b := range members {
		list = append(list, q.candidate(b, offered[b.Slot], b.ID == chosen))
	}
	return list
}

func (q *question) candidate(b *Backend, offer *ledger.Candidate, chosen bool) Candidate {
	c := Candidate{Backend: b.ID, Load: q.loadOf(b.Slot, b.Bypass(), b.slowness())}
	q.tellHeld(&c, b)
	c.Eligible, c.Why = offer != nil, "costs more"
	switch {
	case chosen:
		c.Why = "chosen"
	case q.req.tried(b):
		c.Why = "tried before"
	case offer == nil && b.Standing() != Available:
		c.Why = b.Standing().String()
	case offer == nil:
		c.Why = "passed over by the policy"
	}
	if offer != nil {
		c.Cost = q.order.LoadScale*c.Load + offer.Cost
	}
	if q.lastResort && !chosen {
		c.Eligible, c.Why = false, b.Standing().String()
	}
	return c
}

// tellHeld says what is known of the prompt at a member, and from where.
func (q *question) tellHeld(c *Candidate, b *Backend) {
	c.MatchedBlocks, c.Index = q.walk.Matched(b.Slot), "map"
	if q.req.Index == nil || q.req.SkipsCache || !b.Precise() {
		return
	}
	c.MatchedBlocks, c.Index = 0, "unheard"
	if m, heard := q.req.Index.Held.Of(b.Slot); heard {
		c.MatchedBlocks, c.Index = m.Tokens/max(m.BlockSize, 1), "index"
	}
}
