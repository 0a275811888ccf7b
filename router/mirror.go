package router

// SetCache tells how many tokens b's KV cache holds; 0 means unknown, and then
// its mirror is bounded only by the time its locations stay unused.
func (r *Router) SetCache(b *Backend, tokens, _ int) {
	if b.cacheTokens.Swap(int64(tokens)) != int64(tokens) {
		r.resize(b, initialBytesPerToken)
	}
}

// resize sets b's mirror to what its cache holds, at a ratio of CBR to tokens.
func (r *Router) resize(b *Backend, bytesPerToken float64) {
	tokens := b.cacheTokens.Load()
	blocks := int64(0)
	if tokens > 0 {
		blocks = max(int64(r.cfg.MirrorShare*float64(tokens)*bytesPerToken/float64(r.cfg.BlockSize)), 1)
	}
	if was := b.mirror.Load(); was != 0 && blocks != 0 && abs(blocks-was)*50 < was {
		return // within 2 %: not worth an eviction
	}
	if b.mirror.Swap(blocks) != blocks {
		r.locations.SetMirror(b.Slot, int(blocks))
	}
}

// observe learns the model's ratio and corrects the mirror of the backend.
func (r *Router) observe(t *Ticket, prompt, cached int64) {
	if prompt <= 0 {
		return
	}
	t.model.learnRatio(t.bytes, prompt)
	ratio := t.model.bytesPerToken()
	r.resize(t.Backend, ratio)
	predicted := float64(t.Decision.MatchedBlocks) * float64(r.cfg.BlockSize) / ratio
	r.metrics.tokens(cached, min(int64(predicted), prompt))
}

func abs(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}
