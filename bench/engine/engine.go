package engine

import (
	"slices"
	"time"
)

// Engine is one simulated inference server as a state machine in virtual time. It has no goroutine and no clock: the caller says
// what time it is, and times never go back. It is not safe for concurrent use.
type Engine struct {
	p       Profile
	pool    *pool
	pending []*seq // still in the front end, by the time they leave it
	waiting []*seq // in the scheduler's queue, first come first served
	running []*seq // in the order of admission
	live    map[uint64]*seq
	run     run
	clock   time.Duration // what Advance has been told
	stuck   bool          // the head of the queue did not fit, and nothing has left since
	tokens  bool          // report each token
	maxRun  int           // steps that one run may span; a test's knob
	refused []*seq        // to be reported as Rejected
	marks   []mark        // scratch space of fill
	journal *journal      // nil: nobody watches
	shown   gauges
	stats   Stats
}

// New returns an idle engine with an empty cache.
func New(p Profile) *Engine {
	p = p.withDefaults()
	return &Engine{
		p: p, pool: newPool(p.KVTokens / p.BlockTokens), live: make(map[uint64]*seq), maxRun: 1 << 20,
	}
}

// Profile returns the profile in force, defaults filled in.
func (e *Engine) Profile() Profile { return e.p }

// ReportTokens switches Token events on: then Advance reports progress, and Next names the end of every step. Off, an engine that
// only decodes has nothing to say until a request ends, which makes a long simulation cheap. Times are the same either way.
func (e *Engine) ReportTokens(on bool) { e.tokens = on }

// Submit hands over a request that arrives at now. It joins the first step that begins after the front end is done with it.
func (e *Engine) Submit(now time.Duration, r Request) {
	r.PromptTokens, r.OutputTokens = max(r.PromptTokens, 1), max(r.OutputTokens, 1)
	s := &seq{Request: r, target: r.PromptTokens}
	s.ready = max(now, e.clock) + e.p.Overhead
	if e.p.blocksFor(r.PromptTokens+r.OutputTokens) > e.pool.size {
		e.refused = append(e.refused, s)
		return
	}
	e.live[r.ID] = s
	i := len(e.pending)
	for i > 0 && e.pending[i-1].ready > s.ready {
		i--
	}
	e.pending = slices.Insert(e.pending, i, s)
	e.run.cutAt(s.ready, e.clock)
}

// Cancel ends a request without an event: at once while it waits, at the end of the step that Advance last saw if it runs.
func (e *Engine) Cancel(id uint64) {
	s, ok := e.live[id]
	if !ok || s.cancelled {
		return
	}
	s.cancelled = true
	e.stats.Cancelled++
	if s.running {
		e.run.cutAt(e.clock, e.clock)
		return
	}
	delete(e.live, id)
	if i := slices.Index(e.pending, s); i >= 0 {
		e.pending = slices.Delete(e.pending, i, i+1)
		return
	}
	i := slices.Index(e.waiting, s)
	e.waiting = slices.Delete(e.waiting, i, i+1)
	e.stuck = false
	e.run.cutAt(e.clock, e.clock)
}

// Next returns when Advance will next have something to do, false when the engine is idle.
func (e *Engine) Next() (time.Duration, bool) {
	switch {
	case len(e.refused) > 0:
		return e.clock, true
	case e.run.steps > 0 && e.tokens:
		return e.run.end(e.run.done + 1), true
	case e.run.steps > 0:
		return e.run.end(e.run.steps), true
	case len(e.pending) > 0:
		return e.pending[0].ready, true
	}
	return 0, false
}

// Advance runs every step that ends at or before now, and reports what happened in them in the order of time.
func (e *Engine) Advance(now time.Duration, emit func(Event)) {
	e.reject(now, emit)
	for {
		if e.run.steps == 0 && !e.begin(now) {
			break
		}
		end := e.run.end(e.run.steps)
		if end > now {
			e.progress(now, emit)
			break
		}
		e.finish(end, emit)
		e.plan(end)
	}
	e.clock = max(e.clock, now)
}

// begin starts a step of an idle engine, if something has arrived by now.
func (e *Engine) begin(now time.Duration) bool {
	if len(e.pending) > 0 && e.pending[0].ready <= now {
		e.plan(max(e.pending[0].ready, e.clock))
	}
	return e.run.steps > 0
}

func (e *Engine) reject(now time.Duration, emit func(Event)) {
	for _, s := range e.refused {
		e.stats.Rejected++
		emit(Event{At: now, ID: s.ID, Kind: Rejected})
	}
	e.refused = e.refused[:0]
}

// Running is how many requests are in the batch.
func (e *Engine) Running() int { return len(e.running) }

// Waiting is how many requests have been submitted and do not run.
func (e *Engine) Waiting() int { return len(e.waiting) + len(e.pending) }

// Queued is how many requests found no room in the last step that is over, of tokens, blocks or places: vLLM's
// num_requests_waiting. Its scheduler takes in what has arrived when it plans a step, and counts what is left when the step is over
// (vllm/v1/core/sched/scheduler.py, make_stats). So what arrives during a step never shows if the next one has room for it.
func (e *Engine) Queued() int { return e.shown.queued }

// KVUsage is the share of the cache that running requests held when the last step was over, 0 to 1: what an engine exports, as of
// when it counts. A full but idle cache has none.
func (e *Engine) KVUsage() float64 { return float64(e.shown.held) / float64(e.pool.size) }

// gauges are what the engine counts at the end of each step.
type gauges struct {
	queued int // requests
	held   int // blocks
}

// Blocks is the size of the cache in blocks.
func (e *Engine) Blocks() int { return e.pool.size }

// CachedBlocks is how many blocks have content that a prompt could hit.
func (e *Engine) CachedBlocks() int { return e.pool.byHash.count }

// Cached is how many leading blocks of a prompt are in the cache now. A prompt that ends with the last of them still computes
// that one again.
func (e *Engine) Cached(blocks []uint64) int { return e.pool.leading(blocks) }

// Stats returns the counters.
func (e *Engine) Stats() Stats { return e.stats }

// Clear drops the cache's content. Live requests go on.
func (e *Engine) Clear() {
	e.pool.clear()
	if e.journal != nil {
		e.journal.cleared()
		e.run.cutAt(e.clock, e.clock)
	}
}

// Restart drops the cache's content like Clear and tells nobody, as a process that begins anew. Live requests go on.
func (e *Engine) Restart() {
	e.pool.clear()
	if e.journal != nil {
		e.journal.forget()
	}
}
