package router

// Weights are the weights of the weighted score. A score is a sum of numbers
// between 0 and 1, so the weights say what a whole cache hit is worth against
// the difference between the idlest and the busiest backend.
type Weights struct {
	// Cache is the weight of the share of leading blocks that a backend holds.
	Cache float64
	// Load is the weight of its load; it counts against the backend.
	Load float64
	// MinBlocks is how many blocks must match before the cache counts at all.
	MinBlocks int
}

// DefaultWeights favour the cache as the field's defaults do: prefix 3, queue 2
// (llm-d's chart).
func DefaultWeights() Weights { return Weights{Cache: 3, Load: 2, MinBlocks: 1} }

// weighted ranks by cache_weight * hit ratio - load_weight * normalised load.
type weighted struct {
	w     Weights
	guard Guard
}

func (weighted) looks() bool { return true }

func (p weighted) order(q *question) {
	least := int64(p.w.MinBlocks) * int64(q.router.cfg.BlockSize)
	if longest := q.longest(); longest == 0 || longest < least || p.tooBusy(q, longest) {
		q.offerAll()
		return
	}
	for _, b := range q.eligible {
		q.offer(b, -p.w.Cache*float64(q.held(b))/float64(q.req.Bytes))
	}
	if _, most := q.loadRange(); most > 0 {
		q.order.LoadScale = p.w.Load / most
	}
}

// tooBusy is whether the guard trips for those that hold the longest prefix.
func (p weighted) tooBusy(q *question, longest int64) bool {
	defer func() { q.order.Candidates = q.order.Candidates[:0] }()
	for _, b := range q.eligible {
		if q.held(b) == longest {
			q.offer(b, 0)
		}
	}
	return p.guard.trips(q)
}
