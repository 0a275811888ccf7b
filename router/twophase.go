package router

import "kvca/state/cbr"

// twoPhase is the reference rule: a bootstrap request goes to the least-loaded
// backend, a follow-up to the least-loaded of those that hold the block before
// the divergence point. Where no eligible backend holds it, everyone may take it.
type twoPhase struct{ guard Guard }

func (twoPhase) looks() bool { return true }

func (p twoPhase) order(q *question) {
	if q.phase == cbr.FollowUp && !q.req.SkipsCache {
		p.offerReplicas(q)
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

// offerReplicas makes those candidates that hold the block before the divergence
// point; where the index knows the prompt, those that hold most of it.
func (p twoPhase) offerReplicas(q *question) {
	known := len(q.known) > 0
	for i, b := range q.eligible {
		switch {
		case known && q.held[i] > 0 && q.held[i] == q.longest,
			!known && !q.req.Unbelieved && q.walk.Divergence > 0 && q.walk.Matched(b.Slot) >= q.walk.Divergence:
			q.offer(i, 0)
		}
	}
}
