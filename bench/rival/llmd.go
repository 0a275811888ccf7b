package rival

import (
	"cmp"
	"slices"
)

// scorers is llm-d's sum of weighted scores, each from 0 to 1; the highest wins,
// equals are decided by lot.
//
//	prefix   units matched / units of the prompt
//	queue    (longest - queue) / (longest - shortest) of the scraped queues; 1 for all where equal
//	kv       1 - scraped share of the KV cache in use
//	cold     of a prompt that nobody has a unit of: 1 for the backend whose last such request is the
//	         longest ago (or that never had one) down to 0 for the latest; else 1/2 for all
//
// Source: llm-d/llm-d-router, pkg/epp/framework/plugins/scheduling/scorer
// (prefix, queuedepth, kvcacheutilization, nohitlru) and
// .../requestcontrol/dataproducer/approximateprefix; weights of
// config/charts/routerlib/templates/_config.yaml (2, 2, 3) and of the optimized
// baseline, which adds no-hit-lru-scorer with 2.
type scorers struct{ prefix, queue, kv, cold float64 }

// llm-d keeps a list of hashes of 64 tokens for each pod. A prompt is put into it
// from its beginning on, so that the beginning is dropped first, and is matched by
// counting the blocks that a pod has as long as any pod has one.
const (
	llmdBlocks      = 31_250
	llmdBlockTokens = 64
)

func llmdLists(c *Config) retention {
	return retention{units: max(1, llmdBlocks*llmdBlockTokens/c.UnitTokens), forgets: true}
}

func (s scorers) choose(q *question) int {
	var cold []float64
	if s.cold != 0 && !q.anyMatch() {
		cold = q.coldScores()
	}
	units := max(1, len(q.request.Names))
	return q.highest(s, cold, func(b int) float64 { return float64(q.match[b]) / float64(units) })
}

// highest is the backend of the highest sum; prefix gives its prefix score, cold
// is nil where that score is the same for all.
func (q *question) highest(s scorers, cold []float64, prefix func(backend int) float64) int {
	shortest, longest := q.queues()
	return q.cheapest(func(b int) float64 {
		queue, unhit := 1.0, 0.5
		if longest > shortest {
			queue = float64(longest-q.figures[b].waiting) / float64(longest-shortest)
		}
		if cold != nil {
			unhit = cold[b]
		}
		return -(s.prefix*prefix(b) + s.queue*queue + s.kv*(1-q.figures[b].usage) + s.cold*unhit)
	})
}

func (q *question) queues() (shortest, longest int) {
	shortest = q.figures[q.live[0]].waiting
	for _, b := range q.live {
		shortest, longest = min(shortest, q.figures[b].waiting), max(longest, q.figures[b].waiting)
	}
	return shortest, longest
}

// coldScores ranks the backends by the time of their last cold request.
func (q *question) coldScores() []float64 {
	scores := make([]float64, len(q.cold))
	order := slices.Clone(q.live)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(q.cold[a], q.cold[b]) })
	for rank, b := range order {
		scores[b] = 1 - float64(rank)/float64(max(1, len(order)-1))
	}
	return scores
}
