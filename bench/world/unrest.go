package world

import (
	"math/rand/v2"
	"slices"
	"time"

	"kvca/bench/trace"
)

// restless is the trace with every turn as late as some turn was in the world. Which of two requests comes first is chance there, and
// in the simulator it is not: round-robin on one node would route the same trace the same way for every seed, and the mean of the
// seeds would be one throw of the dice.
func restless(t *trace.Trace, late []time.Duration, seed uint64) *trace.Trace {
	way := rand.New(rand.NewPCG(seed, 0))
	moved := &trace.Trace{Name: t.Name, Sessions: slices.Clone(t.Sessions)}
	for i := range moved.Sessions {
		s := &moved.Sessions[i]
		s.Requests = slices.Clone(s.Requests)
		for j := range s.Requests {
			s.Requests[j].Think += late[way.IntN(len(late))]
		}
	}
	return moved
}
