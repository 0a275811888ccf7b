package rival

import "math"

// affinity is llm-d's newer baseline: of the pods that have most of the prompt,
// if there are any, else of all, the one with the fewest uncached tokens in
// flight, this prompt's counted. Pods that have it are passed over where the
// best of them has so many more tokens in flight than the best other.
//
// Source: llm-d/llm-d-router, pkg/epp/framework/plugins/scheduling/filter/prefixcacheaffinity,
// .../scorer/tokenload, .../requestcontrol/dataproducer/inflightload; llm-d/llm-d,
// guides/optimized-baseline/router/optimized-baseline.values.yaml. Later versions
// give the penalty as 18 s at 15,928 tokens a second, which is the same.
type affinity struct {
	threshold float64 // of the prompt's units
	penalty   int     // tokens, to be exceeded
	full      int     // tokens above which all are alike
}

func (a affinity) choose(q *question) int {
	stay := a.stays(q)
	return q.cheapest(func(b int) float64 {
		if stay && !a.sticky(q, b) {
			return math.Inf(1)
		}
		return float64(min(a.full, q.loads[b].prefill+q.unmatched(b)))
	})
}

// stays is whether only pods that have the prompt are looked at.
func (a affinity) stays(q *question) bool {
	const nobody = math.MaxInt
	sticky, other := nobody, nobody
	for _, b := range q.live {
		if a.sticky(q, b) {
			sticky = min(sticky, q.loads[b].prefill)
		} else {
			other = min(other, q.loads[b].prefill)
		}
	}
	return sticky != nobody && (other == nobody || sticky-other <= a.penalty)
}

func (a affinity) sticky(q *question, b int) bool {
	return len(q.request.Names) > 0 && float64(q.match[b]) >= a.threshold*float64(len(q.request.Names))
}
