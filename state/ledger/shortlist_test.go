package ledger

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kvca/state"
)

func TestShortlistHoldsTheCheapest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, o := New(), &Order{ActiveBytes: 512, LoadScale: 1}
		costs := rapid.SliceOfN(rapid.IntRange(0, 30), 1, 200).Draw(t, "costs")
		for i, c := range costs {
			o.Candidates = append(o.Candidates, Candidate{Slot: state.Slot(i), Slowness: 1, Cost: float64(c)})
		}
		n := rapid.IntRange(0, 80).Draw(t, "n")
		got := l.Shortlist(o, n, rapid.IntRange(0, len(costs)-1).Draw(t, "begin"), nil)
		chosen := make([]int, 0, len(got))
		for _, i := range got {
			chosen = append(chosen, costs[i])
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != min(n, len(costs)) {
			t.Fatalf("%d of %d candidates on a list of %d", len(got), len(costs), n)
		}
		slices.Sort(costs)
		slices.Sort(chosen)
		if !slices.Equal(chosen, costs[:len(chosen)]) {
			t.Fatalf("chosen at %v, the cheapest are at %v", chosen, costs[:len(chosen)])
		}
	})
}
