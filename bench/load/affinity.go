package load

import (
	"slices"

	"kvca/bench/fake"
)

// Affinity is where the turns of conversations were served.
type Affinity struct {
	// FollowUps counts the turns after the first, Kept those of them that went
	// to the backend of the turn before.
	FollowUps, Kept int
	// Lost counts those that were not kept: the second turn's first.
	Lost []int
	// PerBackend is how many turns each backend served.
	PerBackend []int
}

// AffinityOf reads it from what the backends saw.
func AffinityOf(served []fake.Served, backends int) Affinity {
	a := Affinity{PerBackend: make([]int, backends)}
	type turn struct{ conversation, turn int }
	at := make(map[turn]int, len(served))
	for _, s := range served {
		at[turn{s.Conversation, s.Turn}] = s.Backend
		a.PerBackend[s.Backend]++
	}
	for t, backend := range at {
		if before, ok := at[turn{t.conversation, t.turn - 1}]; ok {
			a.FollowUps++
			if before == backend {
				a.Kept++
				continue
			}
			a.Lost = append(a.Lost, make([]int, max(0, t.turn-len(a.Lost)))...)
			a.Lost[t.turn-1]++
		}
	}
	return a
}

// Share is the share of follow-ups that were kept, 1 if there were none.
func (a Affinity) Share() float64 {
	if a.FollowUps == 0 {
		return 1
	}
	return float64(a.Kept) / float64(a.FollowUps)
}

// Spread is the busiest backend's turns over the mean, 1 if there were none.
func (a Affinity) Spread() float64 {
	total := 0
	for _, n := range a.PerBackend {
		total += n
	}
	if total == 0 {
		return 1
	}
	return float64(slices.Max(a.PerBackend)) * float64(len(a.PerBackend)) / float64(total)
}
