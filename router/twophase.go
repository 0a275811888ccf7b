package router

import "kvca/state/cbr"

// twoPhase is the reference rule: a bootstrap request goes to the least-loaded
// backend, a follow-up to the least-loaded of those that hold the block before
// the divergence point. Where no eligible backend holds it, everyone may take it.
type twoPhase struct{ guard Guard }

func (twoPhase) looks() bool { return true }

func (p twoPhase) order(q *question) {
	if q.phase == cbr.FollowUp && !q.req.SkipsCache && q.walk.Divergence > 0 {
		for i, b := range q.eligible {
			if q.walk.Matched(b.Slot) >= q.walk.Divergence {
				q.offer(i, 0)
			}
		}
		if len(q.order.Candidates) > 0 && !p.guard.trips(q) {
			return
		}
		q.withdraw()
	}
	q.offerAll()
}

// offerAll makes everyone eligible a candidate, so that load alone decides.
func (q *question) offerAll() {
	for i := range q.eligible {
		q.offer(i, 0)
	}
}

// withdraw takes all offers back.
func (q *question) withdraw() {
	q.order.Candidates = q.order.Candidates[:0]
}
