package engine

import (
	"slices"
	"time"
)

// batch sums up the step that is being put together.
type batch struct {
	budget   int // tokens left
	decoding int // sequences that decode
	context  int // tokens they attend to
	prompts  time.Duration
	chunks   int
}

func (b *batch) decode(s *seq) {
	s.chunk = 1
	b.budget--
	b.decoding++
	b.context += s.computed + 1
}

func (b *batch) cost(p Profile) time.Duration {
	if b.decoding == 0 {
		return p.PrefillStep + b.prompts
	}
	return p.decodeCost(b.decoding, b.context) + b.prompts
}

// prefill gives s its next chunk. The blocks it fills can be hit from now on, also by others in the same step, as in vLLM.
func (e *Engine) prefill(b *batch, s *seq) {
	s.chunk = min(s.target-s.computed, b.budget)
	b.budget -= s.chunk
	b.chunks++
	b.prompts += e.p.promptCost(s.chunk, s.computed)
	unit := e.p.BlockTokens
	for i := s.computed / unit; i < (s.computed+s.chunk)/unit; i++ {
		e.name(s, i)
	}
}

// plan puts together what begins at t: running requests first, in order, then the queue as far as budget and blocks go.
func (e *Engine) plan(t time.Duration) {
	e.arrive(t)
	b := batch{budget: e.p.MaxBatchedTokens}
	preempted := e.continueRunning(&b)
	if !preempted {
		e.admit(&b)
	}
	if b.decoding == 0 && b.chunks == 0 {
		e.run = run{}
		return
	}
	e.run = run{start: t, steps: 1, first: b.cost(e.p)}
	if b.chunks == 0 && b.decoding == len(e.running) && !preempted {
		e.extend(b)
	}
}

func (e *Engine) arrive(t time.Duration) {
	n := 0
	for n < len(e.pending) && e.pending[n].ready <= t {
		n++
	}
	e.waiting = append(e.waiting, e.pending[:n]...)
	e.pending = slices.Delete(e.pending, 0, n)
}

// continueRunning gives each running request its tokens. A request that needs a block when none is left drives out the one
// admitted last, which will compute everything again.
func (e *Engine) continueRunning(b *batch) (preempted bool) {
	for i := 0; i < len(e.running); i++ {
		s := e.running[i]
		s.chunk = 0
		switch {
		case b.budget == 0:
		case !s.decoding():
			e.prefill(b, s)
		default:
			for !e.grow(s) {
				preempted = true
				e.preemptLast()
				if len(e.running) <= i {
					return true
				}
			}
			b.decode(s)
		}
	}
	return preempted
}

// grow makes room for one more token of s.
func (e *Engine) grow(s *seq) bool {
	if len(s.held)*e.p.BlockTokens > s.computed {
		return true
	}
	if e.pool.free() == 0 {
		return false
	}
	s.held = append(s.held, e.pool.take())
	return true
}

func (e *Engine) preemptLast() {
	i := len(e.running) - 1
	s := e.running[i]
	e.running[i] = nil
	e.running = e.running[:i]
	e.leave(s)
	s.computed, s.chunk, s.target = 0, 0, s.PromptTokens+s.generated
	e.waiting = slices.Insert(e.waiting, 0, s)
	e.stats.Preemptions++
}

// leave takes back what a running request holds.
func (e *Engine) leave(s *seq) {
	e.pool.release(s.held)
	s.held, s.running = s.held[:0], false
	e.stuck = false
}

// admit starts requests from the queue's head. One that does not fit blocks those behind it, and is looked at again when a
// request has left.
func (e *Engine) admit(b *batch) {
	n := 0
	for n < len(e.waiting) && b.budget > 0 && len(e.running) < e.p.MaxSeqs && !e.stuck {
		s := e.waiting[n]
		if !e.reserve(s) {
			e.stuck = true
			break
		}
		n++
		e.running = append(e.running, s)
		e.prefill(b, s)
	}
	e.waiting = slices.Delete(e.waiting, 0, n)
}

// reserve pins what the cache has of s and takes blocks for the rest of what is to be computed. At least one token is always left
// to compute, for there must be something to sample from.
func (e *Engine) reserve(s *seq) bool {
	blocks := e.p.blocksFor(s.target)
	s.held = slices.Grow(s.held[:0], e.p.blocksFor(s.PromptTokens+s.OutputTokens))
	limit := (s.target - 1) / e.p.BlockTokens
	if s.Anew {
		limit = 0
	}
	found, idle := e.pool.find(s.held, s.chain(e.p.BlockTokens), limit)
	hits := len(found)
	if blocks-hits > e.pool.free()-idle {
		return false
	}
	for _, i := range found {
		e.pool.pin(i)
	}
	for s.held = found; len(s.held) < blocks; {
		s.held = append(s.held, e.pool.take())
	}
	s.computed, s.running = hits*e.p.BlockTokens, true
	e.countAdmission(s)
	return true
}

func (e *Engine) countAdmission(s *seq) {
	if s.admitted {
		return
	}
	s.admitted, s.cached = true, s.computed
	e.stats.PromptTokens += uint64(s.PromptTokens)
	e.stats.CachedTokens += uint64(s.cached)
}
