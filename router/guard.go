package router

import (
	"errors"
	"fmt"
)

// Guard lets load decide where the candidates that hold the prefix are too busy.
// The zero value never does. The cost policy needs none: its cost is continuous.
type Guard struct {
	// Absolute is by how many active requests' worth of load the least-loaded
	// candidate must exceed the least-loaded backend; 0 switches the guard off.
	Absolute float64
	// Relative is by what factor it must exceed it as well.
	Relative float64
}

// trips is whether the order's candidates are all too busy.
func (g Guard) trips(q *question) bool {
	if g.Absolute <= 0 {
		return false
	}
	candidates := -1.0
	for _, c := range q.order.Candidates {
		load := q.loadOf(c.Slot, c.Bypass, c.Slowness)
		if candidates < 0 || load < candidates {
			candidates = load
		}
	}
	least, _ := q.loadRange()
	return candidates-least > g.Absolute*q.router.cfg.ActiveBytes && candidates > g.Relative*least
}

func (g Guard) validate() error {
	var faults []error
	if !(g.Absolute >= 0) {
		faults = append(faults, fmt.Errorf("guard: REQUESTS is %v: want a number from 0 on, 0 for no guard", g.Absolute))
	}
	if !(g.Relative >= 0) {
		faults = append(faults, fmt.Errorf("guard: FACTOR is %v: want a number from 0 on, such as 1.1", g.Relative))
	}
	return errors.Join(faults...)
}
