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
	if q.longest == 0 || q.longest < least || p.tooBusy(q) {
		q.offerAll()
		return
	}
	for i, held := range q.held {
		q.offer(i, -p.w.Cache*float64(held)/float64(max(q.req.Bytes, 1)))
	}
	if _, most := q.loadRange(); most > 0 {
		q.order.LoadScale = p.w.Load / most
	}
}

// tooBusy is whether the guard trips for those that hold the longest prefix.
func (p weighted) tooBusy(q *question) bool {
	defer q.withdraw()
	for i, held := range q.held {
		if held == q.longest {
			q.offer(i, 0)
		}
	}
	return p.guard.trips(q)
}
