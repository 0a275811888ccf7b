package router

import (
	"errors"
	"fmt"

	"kvca/state/kvindex"
)

// IndexAnswer is what the precise index knows of a request's prompt.
type IndexAnswer struct {
	// Held is what each source holds. It must stay as it is until Route returns.
	Held *kvindex.Result
	// Tokens is the length of what was looked up: the whole prompt, or where Whole is
	// false a beginning of it, since the rest was not known in time.
	Tokens int
	Whole  bool
}

// TierWeights are what a block counts for in each tier, against one that must be
// computed: to load it from a slower one takes time too. Indexed by kvindex.Tier.
type TierWeights [kvindex.Tiers]float64

// DefaultTierWeights are those of the field's indexers.
func DefaultTierWeights() TierWeights { return TierWeights{1, 0.7, 0.4, 0.2} }

// known is what the index says of one of the eligible: nothing is held and the block
// size is 0 where it has not heard from it.
type known struct {
	kvindex.Match
	tier float64 // mean weight of the tiers of what it holds, 0 for nothing
}

// consult fills known from the index's answer. It leaves it empty where there is none.
func (q *question) consult() {
	q.known = q.known[:0]
	if q.req.Index == nil || q.req.SkipsCache {
		return
	}
	for i := range q.facts {
		var k known
		if q.facts[i].precise {
			if m, heard := q.req.Index.Held.Of(q.facts[i].slot); heard {
				k = known{m, q.router.cfg.Tiers.mean(&m)}
			}
		}
		q.known = append(q.known, k)
	}
}

func (w TierWeights) validate() error {
	var faults []error
	for t, v := range w {
		if !(v >= 0 && v <= 1) {
			faults = append(faults, fmt.Errorf("tier_weights: %v is %v: want 0 to 1", kvindex.Tier(t), v))
		}
	}
	return errors.Join(faults...)
}

func (w *TierWeights) mean(m *kvindex.Match) float64 {
	if m.Tokens == 0 {
		return 0
	}
	sum := 0.0
	for t, tokens := range m.TierTokens {
		sum += w[t] * float64(tokens)
	}
	return min(sum/float64(m.Tokens), 1)
}

// bytesPerToken is the prompt's own ratio, or the model's where its length is not
// known.
func (q *question) bytesPerToken() float64 {
	if a := q.req.Index; a.Whole && a.Tokens > 0 {
		return float64(q.req.Bytes) / float64(a.Tokens)
	}
	return q.router.models.get(q.req.Model).bytesPerToken()
}

// indexed is whether the index decides what the eligible backend i holds.
func (q *question) indexed(i int) bool { return len(q.known) > 0 && q.facts[i].precise }

// heldByIndex is how many leading bytes the index says that the eligible backend i
// need not compute. What is on its way there counts as well: the engine tells of it
// when it is computed.
func (q *question) heldByIndex(i int) int64 {
	k := &q.known[i]
	held := int64(float64(k.Tokens) * k.tier * q.ratio)
	s := q.facts[i].slot
	if expected := q.walk.Expected(s); expected > q.walk.Matched(s) {
		held = max(held, int64(expected)*int64(q.router.cfg.BlockSize))
	}
	return min(held, q.req.Bytes)
}

// promptTokens is how long the prompt is, as far as is known.
func (q *question) promptTokens() int {
	if a := q.req.Index; !a.Whole && q.ratio > 0 {
		return max(int(float64(q.req.Bytes)/q.ratio), a.Tokens)
	}
	return q.req.Index.Tokens
}

// tokenBlocks tells a decision in the engine's own blocks, by what the index says of
// the eligible backend i. One that it has not heard from is measured in the blocks of
// the others; where nobody has stored anything yet, those of the CBR are as good.
func (q *question) tokenBlocks(d *Decision, i int) {
	size := q.known[i].BlockSize
	for k := 0; size == 0 && k < len(q.known); k++ {
		size = q.known[k].BlockSize
	}
	if size == 0 {
		d.MatchedBlocks, d.NovelBlocks = 0, d.ChainBlocks
		return
	}
	d.BlockUnit = unitTokens
	d.MatchedBlocks = q.known[i].Tokens / size
	d.ChainBlocks = max(q.promptTokens()/size, d.MatchedBlocks)
	d.NovelBlocks = d.ChainBlocks - d.MatchedBlocks
	d.PredictedTokens = q.known[i].Tokens
}
