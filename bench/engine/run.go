package engine

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// run is one step, or several that differ only in that each decoding sequence has grown by a token: step k costs
// first + (k-1)*grow. Nothing but time tells such steps apart, so they need not be taken one by one.
type run struct {
	start       time.Duration
	first, grow time.Duration
	steps       int // 0: no step is running
	done        int // steps whose tokens have been accounted
}

// end is when the first k steps are over.
func (r *run) end(k int) time.Duration {
	n := time.Duration(k)
	return r.start + n*r.first + r.grow*(n*(n-1)/2)
}

// ended is how many steps are over at now.
func (r *run) ended(now time.Duration) int {
	return r.done + sort.Search(r.steps-r.done, func(i int) bool { return r.end(r.done+i+1) > now })
}

// cutAt shortens the run so that it ends with the first step that ends at or after t, and after all that clock has seen.
func (r *run) cutAt(t, clock time.Duration) {
	if r.steps <= 1 {
		return
	}
	k := r.done + 1 + sort.Search(r.steps-r.done-1, func(i int) bool { return r.end(r.done+i+1) >= t })
	r.steps = min(r.steps, max(k, r.ended(clock)+1))
}

// extend lets a step in which everything decodes go on for as long as nothing can change: until a request has its last token,
// one arrives, or blocks run short.
func (e *Engine) extend(b batch) {
	m := e.maxRun
	for _, s := range e.running {
		m = min(m, s.remaining())
	}
	if e.journal != nil {
		m = min(m, e.untilChange())
	}
	for m > 1 && e.growth(m) > e.pool.free() {
		m /= 2
	}
	e.run.steps = max(m, 1)
	e.run.grow = time.Duration(b.decoding) * e.p.PerKVToken
	if len(e.pending) > 0 {
		e.run.cutAt(e.pending[0].ready, e.run.start)
	}
}

// untilChange is how many steps of decode there are up to the next one that changes the cache: by a block that was taken when it
// was planned, or by one that it fills.
func (e *Engine) untilChange() int {
	if len(e.journal.changes) > 0 {
		return 1
	}
	m := e.p.BlockTokens
	for _, s := range e.running {
		m = min(m, e.p.BlockTokens-s.computed%e.p.BlockTokens)
	}
	return m
}

// growth is how many blocks m steps of decode will need.
func (e *Engine) growth(m int) int {
	n := 0
	for _, s := range e.running {
		n += max(0, e.p.blocksFor(s.computed+m)-len(s.held))
	}
	return n
}

// progress accounts the steps of an unfinished run that are over, for callers that want each token.
func (e *Engine) progress(now time.Duration, emit func(Event)) {
	if !e.tokens {
		return
	}
	k := e.run.ended(now)
	if k == e.run.done {
		return
	}
	e.account(k - e.run.done)
	e.run.done = k
	e.journal.flush(e.run.end(k))
	for _, s := range e.running {
		e.report(s, e.run.end(k), emit)
	}
}

// finish accounts the rest of the run, reports it, and lets those go that are done or cancelled.
func (e *Engine) finish(end time.Duration, emit func(Event)) {
	e.account(e.run.steps - e.run.done)
	e.journal.flush(end)
	e.stats.Steps += uint64(e.run.steps)
	e.stats.ComputedBusy += end - e.run.start
	stay := e.running[:0]
	for _, s := range e.running {
		e.report(s, end, emit)
		if !s.cancelled && s.remaining() > 0 {
			stay = append(stay, s)
			continue
		}
		e.leave(s)
		delete(e.live, s.ID)
		if !s.cancelled {
			e.stats.Finished++
		}
	}
	clear(e.running[len(stay):])
	e.running = stay
	e.run = run{}
	e.shown = gauges{queued: len(e.waiting), held: e.pool.held}
}

// report emits what has happened to s since it was last reported.
func (e *Engine) report(s *seq, at time.Duration, emit func(Event)) {
	if s.cancelled || s.generated == s.reported {
		return
	}
	if s.reported == 0 {
		s.reported = 1
		emit(Event{At: at, ID: s.ID, Kind: FirstToken, Tokens: 1, CachedTokens: s.cached})
	}
	ev := Event{At: at, ID: s.ID, Kind: Token, Tokens: s.generated - s.reported, CachedTokens: s.cached}
	switch {
	case s.remaining() == 0:
		ev.Kind = Done
	case !e.tokens || ev.Tokens == 0:
		return
	}
	s.reported = s.generated
	emit(ev)
}

// account books k steps: prompt chunks (then k is 1) and decoded tokens with the blocks they need and fill.
func (e *Engine) account(k int) {
	for i, s := range e.running {
		switch {
		case s.chunk == 0:
		case s.decoding():
			e.markDecode(i, s, k)
			s.computed += k
			e.sampled(s, k)
		default:
			s.computed += s.chunk
			e.stats.PrefillTokens += uint64(s.chunk)
			if s.decoding() {
				e.sampled(s, 1)
			}
		}
	}
	e.fill()
}

func (e *Engine) sampled(s *seq, k int) {
	s.generated += k
	e.stats.OutputTokens += uint64(k)
}

// mark is a block to take or to name in the course of a run. Several requests do so in the order of the steps, as they would if
// each step were taken by itself.
type mark struct {
	order int32 // twice the step, plus one for naming, which comes after the step
	index int32 // of the request in the batch
	block int32 // of the request
}

func (e *Engine) markDecode(index int, s *seq, k int) {
	unit := e.p.BlockTokens
	for b := len(s.held); b*unit < s.computed+k; b++ {
		e.marks = append(e.marks, mark{int32(2 * (b*unit - s.computed)), int32(index), int32(b)})
	}
	for b := s.computed / unit; (b+1)*unit <= s.computed+k; b++ {
		e.marks = append(e.marks, mark{int32(2*((b+1)*unit-1-s.computed) + 1), int32(index), int32(b)})
	}
}

func (e *Engine) fill() {
	slices.SortStableFunc(e.marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.index, b.index))
	})
	for _, m := range e.marks {
		s := e.running[m.index]
		if m.order%2 == 0 {
			s.held = append(s.held, e.pool.take())
		} else {
			e.name(s, int(m.block))
		}
	}
	e.marks = e.marks[:0]
}

// name makes a full block of s known by its hash.
func (e *Engine) name(s *seq, i int) {
	h, ok := s.hash(i, s.PromptTokens/e.p.BlockTokens)
	switch {
	case !ok:
	case e.journal == nil:
		e.pool.register(s.held[i], h)
	case e.pool.register(s.held[i], h):
		e.journal.stored(s, i, s.PromptTokens/e.p.BlockTokens)
	}
}
