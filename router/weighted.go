package router

import (
	"errors"
	"fmt"
	"math"
)

// Weights are the weights of the weighted score. Each of its parts is a number
// between 0 and 1.
type Weights struct {
	// Cache is the weight of the share of the prompt that a backend holds from its
	// beginning on.
	Cache float64
	// Tier is the weight of how fast it can be read: 1 where all that is held lies on
	// the GPU, 0 where nothing is held.
	Tier float64
	// Load is the weight of its being idle: (1 - share of the cache in use) over 1
	// and the requests there.
	Load float64
	// MinBlocks is how many blocks must be held before the cache counts at all, in
	// blocks of the CBR. Too few, and a system prompt decides; too many, and short
	// conversations scatter.
	MinBlocks int
}

// DefaultWeights favour the cache.
func DefaultWeights() Weights { return Weights{Cache: 0.5, Tier: 0.3, Load: 0.2, MinBlocks: 1} }

func (w Weights) validate() error {
	var faults []error
	for _, part := range []struct {
		name  string
		value float64
	}{{"cache", w.Cache}, {"tier", w.Tier}, {"load", w.Load}} {
		if !(part.value >= 0) || math.IsInf(part.value, 0) {
			faults = append(faults, fmt.Errorf("weights: %s is %v: want a number from 0 on", part.name, part.value))
		}
	}
	if w.MinBlocks < 0 {
		faults = append(faults, fmt.Errorf("min_blocks: %d: want 0 or more", w.MinBlocks))
	}
	return errors.Join(faults...)
}

// weighted ranks by
//
//	cache_weight * share of the prompt held + tier_weight * tier + load_weight * load
//
// where load is (1 - KV use) / (1 + requests). The last part is no straight line, and
// owners decide by one: it enters the cost as it is now, and further requests count
// by its slope where it is steepest among the candidates, so that many requests at
// once still part.
type weighted struct {
	w     Weights
	guard Guard
}

func (weighted) looks() bool { return true }

func (p weighted) order(q *question) {
	least := int64(p.w.MinBlocks) * int64(q.router.cfg.BlockSize)
	cached := q.longest > 0 && q.longest >= least && !p.tooBusy(q)
	q.order.ByRequests, q.order.LoadScale = true, 0
	for i := range q.facts {
		score := 0.0
		if cached && q.held[i] > 0 {
			score = p.w.Cache*min(float64(q.held[i])/float64(max(q.req.Bytes, 1)), 1) + p.w.Tier*q.tier(i)
		}
		idle, slope := q.idle(i)
		q.order.LoadScale = max(q.order.LoadScale, p.w.Load*slope)
		q.offer(i, -score-p.w.Load*idle)
	}
	q.forgive()
}

// tier is how fast what the eligible backend i holds can be read. Of what is only
// believed nothing else is known than that it was on the GPU.
func (q *question) tier(i int) float64 {
	if q.indexed(i) && q.known[i].Tokens > 0 {
		return q.known[i].tier
	}
	return 1
}

// idle is the load part of the score of the eligible backend i, and how much of it
// the next request takes. A slower backend's requests count for more.
func (q *question) idle(i int) (idle, slope float64) {
	f := &q.facts[i]
	free := 1 - math.Float64frombits(q.eligible[i].usage.Load())
	requests := float64(q.router.loads.Load(f.slot).Active+f.bypass) * f.slowness
	idle = free / (1 + requests)
	return idle, idle - free/(1+requests+f.slowness)
}

// forgive takes the load that is there already out of the costs: it is in the idle
// parts, and the owner adds it once more.
func (q *question) forgive() {
	for i := range q.order.Candidates {
		c := &q.order.Candidates[i]
		load := float64(q.router.loads.Load(c.Slot).Active+c.Bypass) * c.Slowness
		c.Cost -= q.order.LoadScale * load
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
