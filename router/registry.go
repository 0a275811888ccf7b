package router

import (
	"fmt"
	"math"
	"sync"

	"kvca/state"
)

// registry hands out slots, the lowest free one first, so that tables indexed by
// slot stay short.
type registry struct {
	mu    sync.Mutex
	taken []bool
}

func (g *registry) take() (state.Slot, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, taken := range g.taken {
		if !taken {
			g.taken[i] = true
			return state.Slot(i), nil
		}
	}
	if len(g.taken) >= state.MaxSlots {
		return 0, fmt.Errorf("all %d slots for backends are taken: remove some", state.MaxSlots)
	}
	g.taken = append(g.taken, true)
	return state.Slot(len(g.taken) - 1), nil
}

func (g *registry) giveBack(s state.Slot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken[s] = false
}

// Add makes a backend known. It starts without load or locations, with the
// standing Starting. It fails only when state.MaxSlots backends are known.
func (r *Router) Add(id string) (*Backend, error) {
	s, err := r.slots.take()
	if err != nil {
		return nil, fmt.Errorf("add backend %s: %w", id, err)
	}
	r.loads.Reset(s)
	r.locations.Void(s)
	r.locations.SetMirror(s, 0)
	return newBackend(id, s), nil
}

// Remove forgets a backend: its locations are void and its slot is free. Tickets
// that are still open on it may be used and closed as before.
func (r *Router) Remove(b *Backend) {
	b.SetStanding(Draining)
	r.locations.Void(b.Slot)
	r.loads.Reset(b.Slot)
	r.slots.giveBack(b.Slot)
}

// Void begins a new generation of b: its engine restarted or dropped its cache,
// so nothing that was learned about it holds any more. Its load stays, since
// the requests on it end by themselves.
func (r *Router) Void(b *Backend) { r.locations.Void(b.Slot) }

// Active is the number of requests reserved on b and not over.
func (r *Router) Active(b *Backend) int64 { return r.loads.Load(b.Slot).Active }

// Room is how many requests more members take until they have most for each unit of
// their speed, all together: those of this node, of its peers, and those that the
// engines have besides count. Where none can be chosen there is nothing to wait for.
func (r *Router) Room(members []*Backend, most int) int {
	active, room := int64(0), 0.0
	for _, b := range members {
		if b.Standing() != Available {
			continue
		}
		active += r.loads.Load(b.Slot).Active + b.Bypass()
		room += float64(most) / b.slowness()
	}
	if room == 0 {
		return math.MaxInt
	}
	return int(math.Ceil(room - float64(active))) // of a part of a slot the whole is used
}
