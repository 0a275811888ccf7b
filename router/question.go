package router

import (
	"slices"
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
	// held is how many leading bytes each of the eligible need not compute,
	// longest the greatest of them.
	held    []int64
	longest int64
	// lastResort is true where nobody was eligible and the list holds those
	// that may be tried anyway.
	lastResort bool
	walk       blockmap.Walk
	mark       mark
	order      ledger.Order
	offered    []int // the candidates' places among the eligible
	discount   discount
}

// chainBlocks is the number of blocks that may be matched.
func (q *question) chainBlocks() int { return len(q.req.Chain) }

// heldBy is how many leading bytes of the CBR b need not compute: its blocks, and
// the rest of the request before this one, where it served that.
func (q *question) heldBy(b *Backend) int64 {
	blocks := int64(q.walk.Expected(b.Slot)) * int64(q.router.cfg.BlockSize)
	if q.mark.bytes > blocks && q.mark.heldBy(b.Slot) && blocks >= q.mark.blockBytes {
		return q.mark.bytes
	}
	return blocks
}

// weigh fills held and longest. Most requests of a large fleet are known to a
// few of its backends or to none, and then there is nothing to look up.
func (q *question) weigh() {
	n := len(q.eligible)
	q.held = slices.Grow(q.held[:0], n)[:n]
	clear(q.held)
	q.longest = 0
	if q.req.SkipsCache || len(q.walk.Holders()) == 0 && q.mark.bytes == 0 {
		return
	}
	for i, b := range q.eligible {
		q.held[i] = q.heldBy(b)
		q.longest = max(q.longest, q.held[i])
	}
}

// novel is the prefill work in bytes of CBR that is left where held bytes are
// there already.
func (q *question) novel(held int64) int64 { return max(q.req.Bytes-held, 0) }

// offer makes the eligible backend i a candidate that costs cost beyond its load.
func (q *question) offer(i int, cost float64) {
	b := q.eligible[i]
	q.offered = append(q.offered, i)
	q.order.Candidates = append(q.order.Candidates, ledger.Candidate{
		Slot: b.Slot, Cost: cost, Slowness: b.slowness(), Bypass: b.Bypass(), Novel: q.novel(q.held[i]),
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
	q.findMark()
	q.weigh()
	q.offered = q.offered[:0]
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
