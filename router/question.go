package router

import (
	"slices"
	"time"

	"kvca/state"
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
	// facts are what a policy needs of each of the eligible, side by side: with
	// thousands of them the way to each backend's own memory is what takes time.
	facts []fact
	// held is how many leading bytes each of the eligible need not compute,
	// longest the greatest of them.
	held    []int64
	longest int64
	// place is where among the eligible a slot stands, if it does.
	place []int32
	// lastResort is true where nobody was eligible and the list holds those
	// that may be tried anyway.
	lastResort bool
	// known is what the precise index says of each of the eligible, empty where it
	// says nothing; ratio is how many bytes of the CBR a token stands for.
	known    []known
	ratio    float64
	walk     blockmap.Walk
	mark     mark
	order    ledger.Order
	discount discount
}

type fact struct {
	slowness float64
	pressure uint64 // as Backend has it
	bypass   int64
	room     int64 // requests that its cache holds at once, 0 for no matter
	slot     state.Slot
	mirrored bool // its mirror has a bound, and may be full
	precise  bool // the index covers it
	remote   bool // in another zone
}

// chainBlocks is the number of blocks that may be matched.
func (q *question) chainBlocks() int { return len(q.req.Chain) }

// heldBy is how many leading bytes of the CBR slot s need not compute: its blocks,
// and the rest of the request before this one, where it served that.
func (q *question) heldBy(s state.Slot) int64 {
	blocks := int64(q.walk.Expected(s)) * int64(q.router.cfg.BlockSize)
	if q.mark.bytes > blocks && q.mark.heldBy(s) && blocks >= q.mark.blockBytes {
		return q.mark.bytes
	}
	return blocks
}

// weigh fills held and longest. Most requests of a large fleet are known to a
// few of its backends or to none, and only those are looked at.
func (q *question) weigh() {
	n := len(q.eligible)
	q.held = slices.Grow(q.held[:0], n)[:n]
	clear(q.held)
	q.longest = 0
	if q.consult(); len(q.known) > 0 {
		q.ratio = q.bytesPerToken()
	}
	if q.req.SkipsCache {
		return
	}
	holders := q.walk.Holders()
	if len(holders) > n/4 || len(q.known) > 0 {
		for i := range q.facts {
			q.weighOne(i)
		}
		return
	}
	q.weighSome(holders)
	if q.mark.bytes > 0 {
		q.weighSome(q.mark.walk.Holders())
	}
}

func (q *question) weighSome(holders []state.Slot) {
	for _, s := range holders {
		if int(s) >= len(q.place) {
			continue
		}
		if i := int(q.place[s]); i < len(q.facts) && q.facts[i].slot == s {
			q.weighOne(i)
		}
	}
}

func (q *question) weighOne(i int) {
	switch {
	case q.indexed(i):
		q.held[i] = q.heldByIndex(i)
	case !q.req.Unbelieved:
		q.held[i] = q.heldBy(q.facts[i].slot)
	}
	q.longest = max(q.longest, q.held[i])
}

// novel is the prefill work in bytes of CBR that is left where held bytes are
// there already.
func (q *question) novel(held int64) int64 { return max(q.req.Bytes-held, 0) }

// offer makes the eligible backend i a candidate that costs cost beyond its load.
func (q *question) offer(i int, cost float64) {
	f := &q.facts[i]
	q.order.Candidates = append(q.order.Candidates, ledger.Candidate{
		Slot: f.slot, Ref: int32(i), Cost: cost, Slowness: f.slowness, Bypass: f.bypass, Novel: q.novel(q.held[i]),
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
	q.order = ledger.Order{
		Candidates:  slices.Grow(q.order.Candidates[:0], len(q.eligible)),
		ActiveBytes: r.cfg.ActiveBytes,
		LoadScale:   1,
		Tie:         r.cfg.Rand(),
	}
	return q
}

// done gives the question's scratch back.
func (q *question) done() {
	clear(q.eligible)
	q.eligible, q.facts, q.req = q.eligible[:0], q.facts[:0], nil
	q.router.questions.Put(q)
}

// admit fills the list of eligible backends: those available and not tried
// before. With none left it takes whoever is not draining: a backend that looks
// dead may have recovered since, and trying it is better than refusing. Nobody else
// has what a request is pinned for, so a drain does not keep it away.
func (q *question) admit(members []*Backend) {
	q.lastResort = false
	for _, b := range members {
		if b.Standing() == Available && !q.req.tried(b) {
			q.take(b)
		}
	}
	if len(q.eligible) > 0 {
		return
	}
	for _, b := range members {
		if (b.Standing() != Draining || b == q.req.Pin) && !q.req.tried(b) {
			q.take(b)
		}
	}
	q.lastResort = len(q.eligible) > 0
}

func (q *question) take(b *Backend) {
	if int(b.Slot) >= len(q.place) {
		q.place = append(q.place, make([]int32, int(b.Slot)+1-len(q.place))...)
	}
	q.place[b.Slot] = int32(len(q.eligible))
	q.eligible = append(q.eligible, b)
	q.facts = append(q.facts, fact{
		slowness: b.slowness(), pressure: b.pressure.Load(), bypass: b.Bypass(), slot: b.Slot, room: b.room.Load(),
		mirrored: b.mirror.Load() != 0, precise: b.precise.Load(), remote: b.remote.Load(),
	})
}
