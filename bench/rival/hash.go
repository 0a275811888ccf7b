package rival

import (
	"cmp"
	"math"
	"slices"
)

// sessionHash sends a session where the rendezvous hash of its name says,
// whatever the load: the affinity that most load balancers offer.
type sessionHash struct{}

func (sessionHash) choose(q *question) int {
	best, highest := none, uint64(0)
	for _, b := range q.live {
		if rank := mix(q.request.Session ^ mix(uint64(b)+1)); best == none || rank > highest {
			best, highest = b, rank
		}
	}
	return best
}

// ring is KubeAI's consistent hashing with bounded loads: from the place of the
// prompt's first 100 characters onwards, the first endpoint whose requests,
// this one counted, are at most the factor times the mean; the first of all where
// there is none.
//
// Source: substratusai/kubeai, internal/loadbalancer/balance_chwbl.go, defaults
// of api/k8s/v1/model_types.go. 100 characters are about 25 tokens, so equal
// first units are equal keys. KubeAI takes the first user message's where there
// is one, which a trace does not tell apart.
type ring struct {
	factor float64
	points []point // ascending by place
}

type point struct {
	place   uint64
	backend int
}

func newRing(backends, replicas int, factor float64) *ring {
	r := &ring{factor: factor}
	for b := range backends {
		for i := range replicas {
			r.points = append(r.points, point{mix(mix(uint64(b)+1) + uint64(i)), b})
		}
	}
	slices.SortFunc(r.points, func(a, b point) int { return cmp.Compare(a.place, b.place) })
	return r
}

func (r *ring) choose(q *question) int {
	total := 0
	for _, b := range q.live {
		total += q.loads[b].requests
	}
	bound := r.factor * float64(total+1) / float64(len(q.live))
	if least, _ := q.spread(); total == 0 || float64(least+1) > bound {
		bound = math.Inf(1)
	}
	return r.first(promptKey(q.request), func(b int) bool {
		return !q.down[b] && float64(q.loads[b].requests+1) <= bound
	})
}

// first returns the backend of the first point that will do, from a key's place
// onwards; one must.
func (r *ring) first(key uint64, will func(backend int) bool) int {
	start, _ := slices.BinarySearchFunc(r.points, key, func(p point, key uint64) int { return cmp.Compare(p.place, key) })
	for i := range r.points {
		if b := r.points[(start+i)%len(r.points)].backend; will(b) {
			return b
		}
	}
	return none
}

// promptKey stands for the beginning of the prompt. One shorter than a unit has no
// name: it is taken to be like no other.
func promptKey(r *Request) uint64 {
	if len(r.Names) == 0 {
		return mix(r.ID)
	}
	return mix(r.Names[0])
}
