package blockmap

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"kvca/state"
)

// VacuumAll leaves exactly what the model has, so that sizes can be compared.
func (x *model) VacuumAll(t *rapid.T) {
	if _, more := x.m.Vacuum(x.now, 1<<30); more {
		t.Fatal("more after all")
	}
	blocks, total, soonest := map[uint64]bool{}, 0, time.Duration(0)
	for s := range state.Slot(modelSlots) {
		x.held[s] = slices.DeleteFunc(x.held[s], func(h held) bool { return h.deadline <= x.now })
		n := len(x.held[s])
		total += n
		for _, h := range x.held[s] {
			blocks[h.hash] = true
			if soonest == 0 || h.deadline < soonest {
				soonest = h.deadline
			}
		}
		x.checkAge(t, s)
		if got := x.m.Held(s); got != n {
			t.Fatalf("slot %d holds %d, want %d", s, got, n)
		}
	}
	if st := x.m.Stats(); st.Locations != total || st.Blocks != len(blocks) {
		t.Fatalf("%d locations of %d blocks, want %d of %d", st.Locations, st.Blocks, total, len(blocks))
	}
	if at, ok := x.m.NextDeadline(); ok != (total > 0) || at != soonest {
		t.Fatalf("next deadline is %v, %v, want %v", at, ok, soonest)
	}
	if !x.forgot {
		x.checkFan(t, blocks)
	}
}

func (x *model) checkAge(t *rapid.T, s state.Slot) {
	age, full := x.m.Age(s, x.now)
	if want := x.mirror[s] > 0 && len(x.held[s]) >= x.mirror[s]; full != want {
		t.Fatalf("mirror of slot %d is full: %v, want %v", s, full, want)
	}
	if !full {
		return
	}
	if want := x.now + modelTTL - x.held[s][0].deadline; age != want {
		t.Fatalf("age of slot %d is %v, want %v", s, age, want)
	}
}

func (x *model) checkFan(t *rapid.T, blocks map[uint64]bool) {
	fan := map[uint64]uint32{}
	for h := range blocks {
		fan[x.parent[h]]++
	}
	for h := range blocks {
		chain := []uint64{h}
		for p := x.parent[h]; p != 0; p = x.parent[p] {
			chain = append([]uint64{p}, chain...)
		}
		w := walk(x.m, chain, x.now)
		largest, deeper := uint32(1), 0
		requests := x.requests(chain)
		for i := len(chain) - 1; i >= 0; i-- {
			largest = max(largest, fan[chain[i]])
			if parting := requests[i] - deeper; parting > 0 {
				largest = max(largest, uint32(parting))
			}
			deeper = requests[i]
			if w.Fan[i] != largest {
				t.Fatalf("fan-out at %d of %x is %d, want %d", i, chain, w.Fan[i], largest)
			}
		}
	}
}

// requests counts, for each block of the chain, the requests under way with all
// blocks up to it.
func (x *model) requests(chain []uint64) []int {
	counts := make([]int, len(chain))
	for i, h := range chain {
		for s := range x.awaited {
			if a := x.awaited[s][h]; a != nil {
				counts[i] += a.live + a.stale
			}
		}
		if counts[i] == 0 {
			break
		}
	}
	return counts
}

func (x *model) Walk(t *rapid.T) {
	chain := x.chain(t)
	var w Walk
	x.m.Walk(chain, x.now, &w)
	divergence := 0
	for divergence < len(chain) && x.known(chain[divergence]) {
		divergence++
	}
	if w.Divergence != divergence || len(w.Fan) != len(chain) {
		t.Fatalf("diverges at %d, want %d", w.Divergence, divergence)
	}
	var replicas, holders []state.Slot
	for s := range state.Slot(modelSlots) {
		if divergence > 0 && x.holds(s, chain[divergence-1]) {
			replicas = append(replicas, s)
		}
		x.checkDepth(t, &w, s, chain)
		if w.Expected(s) > 0 {
			holders = append(holders, s)
		}
	}
	if slices.Sort(w.Replicas); !slices.Equal(w.Replicas, replicas) {
		t.Fatalf("replicas are %v, want %v", w.Replicas, replicas)
	}
	if got := slices.Sorted(slices.Values(w.Holders())); !slices.Equal(got, holders) {
		t.Fatalf("holders are %v, want %v", got, holders)
	}
}

func (x *model) checkDepth(t *rapid.T, w *Walk, s state.Slot, chain []uint64) {
	matched, expected := 0, 0
	for matched < len(chain) && x.holds(s, chain[matched]) {
		matched++
	}
	for expected < len(chain) {
		if a := x.awaited[s][chain[expected]]; a == nil || a.live == 0 {
			break
		}
		expected++
	}
	expected = max(expected, matched)
	m, e := w.Matched(s), w.Expected(s)
	if m < matched || e < expected || e < m || m > w.Divergence || e > len(chain) {
		t.Fatalf("slot %d matches %d and is expected to match %d, want %d and %d", s, m, e, matched, expected)
	}
	if !x.forgot && (m != matched || e != expected) {
		t.Fatalf("slot %d matches %d and is expected to match %d, want exactly %d and %d", s, m, e, matched, expected)
	}
}

// finish lets everything end: nothing may be left.
func (x *model) finish(t *rapid.T) {
	for _, p := range x.pending {
		x.m.Unexpect(p.s, p.chain)
	}
	x.m.Vacuum(x.now+modelTTL, 1<<30)
	if s := x.m.Stats(); s.Blocks != 0 || s.Locations != 0 || s.Tentative != 0 || s.Bytes != 0 {
		t.Fatalf("left are %+v", s)
	}
	x.check(t)
}

func (x *model) check(t *rapid.T) {
	if err := check(x.m); err != nil {
		t.Fatal(err)
	}
}
