package router

import "kvca/state/cbr"

// twoPhase is the reference rule: a bootstrap request goes to the least-loaded
// backend, a follow-up to the least-loaded of those that hold the block before
// the divergence point. Where no eligible backend holds it, everyone may take it.
type twoPhase struct{ guard Guard }

func (twoPhase) looks() bool { return true }

func (p twoPhase) order(q *question) {
	if q.phase == cbr.FollowUp && !q.req.SkipsCache && q.walk.Divergence > 0 {
		for _, b := range q.eligible {
			if q.walk.Matched(b.Slot) >= q.walk.Divergence {
				q.offer(b, 0)
			}
		}
		if len(q.order.Candidates) > 0 && !p.guard.trips(q) {
			return
		}
		q.order.Candidates = q.order.Candidates[:0]
	}
	q.offerAll()
}

// offerAll makes everyone eligible a candidate, so that load alone decides.
func (q *question) offerAll() {
	for _, b := range q.eligible {
		q.offer(b, 0)
	}
}
