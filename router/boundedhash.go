package router

import (
	"math"
	"math/bits"
)

// Of a prompt, bounded-hash looks at the first blocks only, about the first
// 2,000 bytes, and at no backend's load above a quarter more than the mean
// (KubeAI's constant; Mirrokni, Thorup, Zadimoghaddam 2016).
const (
	hashedBlocks = 4
	loadBound    = 1.25
)

// boundedHash sends equal beginnings to the same backend, by rendezvous hashing,
// until that one is too busy; then to the next in the prompt's own order.
type boundedHash struct{}

func (boundedHash) looks() bool { return false }

func (boundedHash) order(q *question) {
	if len(q.req.Chain) == 0 {
		leastRequest{}.order(q)
		return
	}
	key := q.req.Chain[min(hashedBlocks, len(q.req.Chain))-1]
	bound := q.requestBound()
	best, spare := -1, -1
	var bestRank, spareLoad uint64
	for i, b := range q.eligible {
		active := uint64(q.router.Active(b))
		if spare < 0 || active < spareLoad {
			spare, spareLoad = i, active
		}
		if rank := rendezvous(key, b.ID); active < bound && (best < 0 || rank > bestRank) {
			best, bestRank = i, rank
		}
	}
	if best < 0 {
		best = spare
	}
	q.offer(best, 0)
}

// requestBound is the number of active requests at which a backend is full.
func (q *question) requestBound() uint64 {
	total := int64(1)
	for _, b := range q.eligible {
		total += q.router.Active(b)
	}
	return uint64(math.Ceil(loadBound * float64(total) / float64(len(q.eligible))))
}

// rendezvous ranks a backend for a key: FNV-1a over its id, mixed with the key
// by a full-width multiplication, as wyhash mixes.
func rendezvous(key uint64, id string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	hi, lo := bits.Mul64(key^h, h^0x9e3779b97f4a7c15)
	return hi ^ lo
}
