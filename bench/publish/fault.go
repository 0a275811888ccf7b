package publish

import "fmt"

// Fault is a way in which batches or replays go wrong.
type Fault string

const (
	// Lost batches are numbered and kept for a replay, but not sent.
	Lost Fault = "lost"
	// Hole batches are numbered and neither sent nor kept: no replay has them.
	Hole Fault = "hole"
	// Twice batches are sent two times in a row.
	Twice Fault = "twice"
	// Swapped pairs of batches are sent in the wrong order. The first of a pair
	// waits for the second.
	Swapped Fault = "swapped"
	// ShortReplay replays stop after half of the batches, without an end.
	ShortReplay Fault = "short-replay"
)

const maxArmed = 1 << 30

// faults counts, for each kind, how often it is still to happen.
type faults map[Fault]int

func (f faults) arm(kind Fault, n int) error {
	switch kind {
	case Lost, Hole, Twice, Swapped, ShortReplay:
	default:
		return fmt.Errorf("fault: %q is none: want %q, %q, %q, %q or %q", kind, Lost, Hole, Twice, Swapped, ShortReplay)
	}
	if n < 1 || n > maxArmed-f[kind] {
		return fmt.Errorf("fault: %q %d times can't be: want 1 to %d", kind, n, maxArmed-f[kind])
	}
	f[kind] += n
	return nil
}

// take returns the first of the kinds that is armed, which happens once less from
// here on; or nothing.
func (f faults) take(kinds ...Fault) Fault {
	for _, kind := range kinds {
		if f[kind] > 0 {
			f[kind]--
			return kind
		}
	}
	return ""
}
