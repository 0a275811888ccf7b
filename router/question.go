package router

import (
	"time"

	"kvca/state/blockmap"
	"kvca/state/cbr"
	"kvca/state/ledger"
)

// question is one decision in the making: the request, who may take it, what is
// known of its prompt, and the order that a policy writes. It is scratch: pooled,
// owned by one call of Route or Explain at a time.
type question struct {
	router   *Router
	req      *Request
	now      time.Duration
	phase    cbr.Phase
	eligible []*Backend
	// lastResort is true where nobody was eligible and the list holds those
	// that may be tried anyway.
	lastResort bool
	walk       blockmap.Walk
	order      ledger.Order
	discount   discount
}

// chainBlocks is the number of blocks that may be matched.
func (q *question) chainBlocks() int { return len(q.req.Chain) }

// expected is how many leading blocks b holds or will hold, and so need not be
// computed there.
func (q *question) expected(b *Backend) int {
	if q.req.SkipsCache {
		return 0
	}
	return q.walk.Expected(b.Slot)
}

// novel is the prefill work in bytes of CBR that is left with m blocks held: the
// blocks beyond them and the partial block at the end, which is never shared.
func (q *question) novel(m int) int64 {
	return max(q.req.Bytes-int64(m)*int64(q.router.cfg.BlockSize), 0)
}

// offer adds b to the order as a candidate that costs cost beyond its load.
func (q *question) offer(b *Backend, cost float64) {
	q.order.Candidates = append(q.order.Candidates, ledger.Candidate{
		Slot: b.Slot, Cost: cost, Speed: b.Speed(), Bypass: b.Bypass(), Novel: q.novel(q.expected(b)),
	})
}

// ask prepares a question: it finds who is eligible and walks the chain.
func (r *Router) ask(req *Request, members []*Backend) *question {
	q := r.questions.Get().(*question)
	q.router, q.req, q.now, q.phase = r, req, r.now(), req.Phase
	if len(req.Chain) == 0 {
		q.phase = cbr.Bootstrap
	}
	q.admit(members)
	r.locations.Walk(req.Chain, q.now, &q.walk)
	q.order = ledger.Order{
		Candidates:  q.order.Candidates[:0],
		ActiveBytes: r.cfg.ActiveBytes,
		LoadScale:   1,
		Tie:         r.cfg.Rand(),
	}
	return q
}

// done gives the question's scratch back.
func (q *question) done() {
	clear(q.eligible)
	q.eligible, q.req = q.eligible[:0], nil
	q.router.questions.Put(q)
}

// admit fills the list of eligible backends: those available and not tried
// before. With none left it takes whoever is not draining: a backend that looks
// dead may have recovered since, and trying it is better than refusing.
func (q *question) admit(members []*Backend) {
	q.lastResort = false
	for _, b := range members {
		if b.Standing() == Available && !q.req.tried(b) {
			q.eligible = append(q.eligible, b)
		}
	}
	if len(q.eligible) > 0 {
		return
	}
	for _, b := range members {
		if b.Standing() != Draining && !q.req.tried(b) {
			q.eligible = append(q.eligible, b)
		}
	}
	q.lastResort = len(q.eligible) > 0
}

// longest is the longest prefix that any eligible backend holds, in blocks.
func (q *question) longest() int {
	best := 0
	for _, b := range q.eligible {
		best = max(best, q.expected(b))
	}
	return best
}
