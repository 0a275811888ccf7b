package router

import "time"

// SetCache tells how many tokens b's KV cache holds; 0 means unknown, and then
// the size of its mirror is learned from what the engine reports of prompts, if
// it does, and otherwise bounded only by the time its locations stay unused.
func (r *Router) SetCache(b *Backend, tokens, _ int) {
	if b.cacheTokens.Swap(int64(tokens)) != int64(tokens) {
		r.resize(b, initialBytesPerToken)
	}
}

// resize sets b's mirror to what its cache holds, at a ratio of CBR to tokens.
func (r *Router) resize(b *Backend, bytesPerToken float64) {
	tokens, was := b.cacheTokens.Load(), b.mirror.Load()
	if tokens == 0 {
		return
	}
	blocks := max(int64(r.cfg.MirrorShare*float64(tokens)*bytesPerToken/float64(r.cfg.BlockSize)), 1)
	if was != 0 && abs(blocks-was)*50 < was {
		return // within 2 %: not worth an eviction
	}
	r.setMirror(b, was, blocks)
}

// observe learns the model's ratio and corrects the mirror of the backend.
func (r *Router) observe(t *Ticket, prompt, cached int64) {
	if prompt <= 0 {
		return
	}
	t.model.learnRatio(t.bytes, prompt)
	r.resize(t.Backend, t.model.bytesPerToken())
	// By the prompt's own ratio: texts differ more than models do.
	believed := min(int64(float64(t.matched*r.cfg.BlockSize)*float64(prompt)/float64(max(t.bytes, 1))), prompt)
	if known, ok := t.Predicted(); ok {
		r.metrics.tokens(cached, known)
	} else {
		r.metrics.tokens(cached, believed)
	}
	r.learnMirror(t.Backend, believed, cached, int64(len(t.chain)))
}

// How the size of a cache is learned that nobody tells: each prompt of which the
// engine had less than was believed makes its mirror smaller, each that was
// there as believed, while the mirror is full, a little larger, and each of which
// there was more than believed as much larger as the first makes it smaller. It
// settles where about one in seventeen is believed in for too long. Simulated
// agents wait 5 to 24 % longer than where the size is known.
const (
	smallEvidence = 256 // tokens: of fewer, blocks that are not complete say as much
	asBelieved    = 0.9 // share of the predicted tokens that must have been there
	shrinkBy      = 32  // a part of the mirror, as growBy
	growBy        = 512
	leastMirror   = 16 // blocks
	// learnEvery is the time between two observations that count: an engine that has
	// dropped its cache has less of every prompt for a while, whatever it holds.
	learnEvery = 500 * time.Millisecond
)

// learnMirror corrects the mirror of a backend of unknown size.
// A prompt is so many blocks long; predicted and cached are in tokens.
func (r *Router) learnMirror(b *Backend, predicted, cached, blocks int64) {
	if b.cacheTokens.Load() != 0 || cached < 0 || max(predicted, cached) < smallEvidence {
		return
	}
	now, last := r.now(), b.learned.Load()
	if last != 0 && now-time.Duration(last) < learnEvery || !b.learned.CompareAndSwap(last, int64(max(now, 1))) {
		return
	}
	was := b.mirror.Load()
	_, full := r.locations.Age(b.Slot, now)
	switch {
	case float64(cached) < asBelieved*float64(predicted):
		size := was
		if size == 0 {
			size = int64(r.locations.Held(b.Slot))
		}
		// At least this prompt is there: it has just been computed.
		r.setMirror(b, was, max(size-size/shrinkBy-1, blocks, leastMirror))
	case full && cached-predicted >= smallEvidence:
		r.setMirror(b, was, was+was/shrinkBy+1)
	case full:
		r.setMirror(b, was, was+was/growBy+1)
	}
}

// setMirror changes the mirror, unless somebody else has done so meanwhile.
func (r *Router) setMirror(b *Backend, was, blocks int64) {
	if blocks != was && b.mirror.CompareAndSwap(was, blocks) {
		r.locations.SetMirror(b.Slot, int(blocks))
	}
}

func abs(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}
