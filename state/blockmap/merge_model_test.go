package blockmap

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/state"
)

// location is what merging has to agree on.
type location struct {
	s    state.Slot
	hash uint64
}

// locations returns all that is believed in, with deadlines, by looking at every
// entry.
func locations(m *Map, now time.Duration) map[location]uint32 {
	all := map[location]uint32{}
	_ = eachEntry(m, func(_ uint32, e *entry) error {
		in := m.incs.at(uint32(e.inc))
		if !in.dead && !expired(e.deadline, uint32(ticks(now))) {
			all[location{in.slot, m.hash(e)}] = e.deadline
		}
		return nil
	})
	return all
}

func sameSet(a, b map[location]uint32) bool {
	return len(a) == len(b) && !slices.ContainsFunc(slices.Collect(maps.Keys(a)), func(l location) bool {
		_, ok := b[l]
		return !ok
	})
}

// telling is a run as drawn, with whom it is about.
type telling struct {
	s state.Slot
	r Run
}

// run draws a path of the model's tree for a slot; from is where it starts,
// given the chain to its end.
func (x *model) run(t *rapid.T, from func(s state.Slot, chain []uint64) int) telling {
	s, chain := x.slot(t), x.chain(t)
	if len(chain) == 0 {
		t.Skip("no block")
	}
	i := from(s, chain)
	r := Run{Hashes: chain[i:], Idle: time.Duration(rapid.IntRange(0, 45).Draw(t, "idle")) * tick}
	if i > 0 {
		r.Parent = chain[i-1]
	}
	return telling{s, r}
}

// runAnywhere may leave what is before the run unsaid.
func (x *model) runAnywhere(t *rapid.T) telling {
	g := x.run(t, func(_ state.Slot, chain []uint64) int { return rapid.IntRange(0, len(chain)-1).Draw(t, "from") })
	if rapid.IntRange(0, 9).Draw(t, "parent unsaid") == 0 {
		g.r.Parent = 0
	}
	return g
}

// connected starts a run at the root or behind what the slot holds.
func (x *model) connected(t *rapid.T) func(state.Slot, []uint64) int {
	return func(s state.Slot, chain []uint64) int {
		n := 0
		for n < len(chain)-1 && x.holds(s, chain[n]) {
			n++
		}
		return rapid.IntRange(0, n).Draw(t, "from")
	}
}

func (x *model) deadline(s state.Slot, hash uint64) time.Duration {
	for _, h := range x.held[s] {
		if h.hash == hash {
			return h.deadline
		}
	}
	return 0
}

func (x *model) set(s state.Slot, hash uint64, deadline time.Duration) {
	x.drop(s, hash)
	x.held[s] = append(x.held[s], held{hash, deadline})
}

// Extend merges news that is connected to what is held, so that the model knows
// what becomes of all deadlines.
func (x *model) Extend(t *rapid.T) {
	g := x.run(t, x.connected(t))
	want := 0
	if deadline := x.now - g.r.Idle + modelTTL; deadline > x.now {
		for _, h := range g.r.Hashes {
			if !x.holds(g.s, h) {
				want++
			}
			x.set(g.s, h, max(deadline, x.deadline(g.s, h)))
		}
		for h := g.r.Parent; h != 0; h = x.parent[h] {
			x.set(g.s, h, max(deadline, x.deadline(g.s, h)))
		}
	}
	if n := x.m.Merge(g.s, x.gen[g.s], g.r, true, x.now); n != want {
		t.Fatalf("news added %d, want %d", n, want)
	}
}

func (x *model) Fill(t *rapid.T) {
	g := x.run(t, x.connected(t))
	want, deadline := 0, x.now-g.r.Idle+modelTTL
	if deadline > x.now {
		for _, h := range g.r.Hashes {
			if p := x.parent[h]; p != 0 {
				deadline = min(deadline, x.deadline(g.s, p))
			}
			if !x.holds(g.s, h) {
				want++
				x.set(g.s, h, deadline)
			}
			deadline = x.now - g.r.Idle + modelTTL
		}
	}
	if n := x.m.Merge(g.s, x.gen[g.s], g.r, false, x.now); n != want {
		t.Fatalf("repair added %d, want %d", n, want)
	}
}

// What is merged behind what is held leaves the map as exact as Learn does.
func TestMapAgreesWithModelWhenMerging(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(small(chunkLen, chunkLen))
		x.m.piece = rapid.SampledFrom([]int{1, 2, 3, maxPiece}).Draw(t, "piece")
		x.m.steps = rapid.SampledFrom([]int{1, maxSteps}).Draw(t, "steps")
		actions := x.actions("Forget", "SetMirror")
		actions["Extend"], actions["Fill"], actions[""] = x.Extend, x.Fill, x.checkClosed
		if x.m.steps < maxSteps {
			delete(actions, "VacuumAll") // it may leave something behind in a loose list
		}
		t.Repeat(actions)
		x.finish(t)
	})
}

// checkWalk compares a walk with what the entries say themselves.
func (x *model) checkWalk(t *rapid.T) {
	chain := x.chain(t)
	all := locations(x.m, x.now)
	holds := func(s state.Slot, i int) bool {
		_, ok := all[location{s, chain[i]}]
		return ok
	}
	var w Walk
	x.m.Walk(chain, x.now, &w)
	for i := range chain {
		var holders []state.Slot
		for s := range state.Slot(modelSlots) {
			if holds(s, i) {
				holders = append(holders, s)
			}
		}
		if i < w.Divergence && len(holders) == 0 || i == w.Divergence && len(holders) > 0 {
			t.Fatalf("diverges at %d, %v hold block %d", w.Divergence, holders, i)
		}
		if slices.Sort(w.Replicas); i == w.Divergence-1 && !slices.Equal(w.Replicas, holders) {
			t.Fatalf("replicas are %v, want %v", w.Replicas, holders)
		}
	}
	for s := range state.Slot(modelSlots) {
		n := 0
		for n < len(chain) && holds(s, n) {
			n++
		}
		if got := w.Matched(s); got < n || got > w.Divergence {
			t.Fatalf("slot %d matches %d, want %d at least and %d at most", s, got, n, w.Divergence)
		}
	}
}

// Whatever is told in whatever order, within whatever bounds: no walk misses a
// holder or believes in what isn't there, and the bounds hold.
func TestWalksFindEveryHolderWhateverIsMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(small(rapid.SampledFrom([]uint32{16, 60, chunkLen}).Draw(t, "entries"), chunkLen))
		x.m.piece = rapid.SampledFrom([]int{1, 2, 3, x.m.piece}).Draw(t, "piece")
		x.m.steps = rapid.SampledFrom([]int{1, 2, maxSteps}).Draw(t, "steps")
		mirror := [modelSlots]int{}
		tell := func(extend bool) func(*rapid.T) {
			return func(t *rapid.T) {
				g := x.runAnywhere(t)
				n := x.m.Merge(g.s, x.m.Generation(g.s), g.r, extend, x.now)
				if n > len(g.r.Hashes) && !extend {
					t.Fatalf("added %d of %d", n, len(g.r.Hashes))
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"Extend": tell(true), "Extend more": tell(true), "Fill": tell(false), "Fill more": tell(false),
			"Learn":   func(t *rapid.T) { learn(x.m, x.slot(t), x.chain(t), x.now) },
			"Walk":    x.checkWalk,
			"Advance": x.Advance, "Vacuum": x.Vacuum,
			"Void": func(t *rapid.T) { x.m.Void(x.slot(t)) },
			"SetMirror": func(t *rapid.T) {
				s := x.slot(t)
				mirror[s] = rapid.IntRange(0, 12).Draw(t, "blocks")
				x.m.SetMirror(s, mirror[s])
			},
			"Forget": func(t *rapid.T) { x.m.Forget(x.slot(t), x.chain(t), 2) },
			"": func(t *rapid.T) {
				x.checkClosed(t)
				for s, n := range mirror {
					if got := x.m.Held(state.Slot(s)); n > 0 && got > n {
						t.Fatalf("slot %d holds %d, its mirror %d", s, got, n)
					}
				}
			},
		})
		x.finish(t)
	})
}

func (x *model) checkClosed(t *rapid.T) {
	x.check(t)
	if err := checkClosure(x.m, x.now); err != nil {
		t.Fatal(err)
	}
}

// apply merges into a new map.
func apply(all []telling, extend bool, now time.Duration) map[location]uint32 {
	m := small(2*chunkLen, chunkLen)
	for _, g := range all {
		merge(m, g.s, g.r, extend, now)
	}
	if err := check(m); err != nil {
		panic(err)
	}
	return locations(m, now)
}

// grouped cuts runs in two, the second the child of the first.
func grouped(t *rapid.T, all []telling) (parts []telling) {
	for _, g := range all {
		n := rapid.IntRange(0, len(g.r.Hashes)-1).Draw(t, "cut")
		if n > 0 {
			parts = append(parts, telling{g.s, Run{Parent: g.r.Parent, Hashes: g.r.Hashes[:n], Idle: g.r.Idle}})
			g.r.Parent = g.r.Hashes[n-1]
		}
		parts = append(parts, telling{g.s, Run{Parent: g.r.Parent, Hashes: g.r.Hashes[n:], Idle: g.r.Idle}})
	}
	return parts
}

func TestMergingTheSameInAnyOrderAndGroupingHoldsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(nil)
		var all []telling
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			g := x.runAnywhere(t)
			g.r.Idle = min(g.r.Idle, modelTTL-tick)
			all = append(all, g)
		}
		extend := rapid.Bool().Draw(t, "extend")
		want := apply(all, extend, time.Hour)
		other := rapid.Permutation(append(grouped(t, all), all[:len(all)/2]...)).Draw(t, "order")
		if got := apply(other, extend, time.Hour); !sameSet(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if got := apply(append(slices.Clone(all), all...), extend, time.Hour); !sameSet(got, want) {
			t.Fatalf("told twice: got %v, want %v", got, want)
		}
	})
}

func TestNewsFromTheRootGivesTheSameDeadlinesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(nil)
		var all []telling
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			all = append(all, x.run(t, func(state.Slot, []uint64) int { return 0 }))
		}
		want := apply(all, true, time.Hour)
		other := rapid.Permutation(append(slices.Clone(all), all[:len(all)/2]...)).Draw(t, "order")
		if got := apply(other, true, time.Hour); !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestRepairToldTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(small(chunkLen, chunkLen))
		for range 5 {
			learn(x.m, x.slot(t), x.chain(t), x.now)
			x.Advance(t)
		}
		g := x.runAnywhere(t)
		merge(x.m, g.s, g.r, false, x.now)
		want := locations(x.m, x.now)
		g.r.Idle = 0
		if n := merge(x.m, g.s, g.r, false, x.now); g.r.Idle < modelTTL && n > 0 && !sameSet(locations(x.m, x.now), want) {
			t.Skip("the first one had expired on its way")
		}
		if got := locations(x.m, x.now); !maps.Equal(got, want) {
			t.Fatal(fmt.Sprintf("got %v, want %v", got, want))
		}
	})
}
