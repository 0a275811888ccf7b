package blockmap

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/state"
)

const (
	modelTTL   = 40 * tick
	modelSlots = 5
)

// model is the map as simple as it can be said: what each slot holds, oldest
// first, with nothing removed but by Void, Forget and the mirror.
type model struct {
	m       *Map
	now     time.Duration
	parent  map[uint64]uint64
	held    [modelSlots][]held
	gen     [modelSlots]uint64
	mirror  [modelSlots]int
	awaited [modelSlots]map[uint64]*awaited
	pending []pending
	forgot  bool // then Matched may be too large
}

type held struct {
	hash     uint64
	deadline time.Duration
}

type awaited struct{ stale, live int }

type pending struct {
	s     state.Slot
	chain []uint64
}

func newModel(m *Map) *model {
	x := &model{m: m, parent: map[uint64]uint64{}}
	for s := range x.awaited {
		x.awaited[s] = map[uint64]*awaited{}
	}
	return x
}

// mix stands for the keyed hash.
func mix(parent, block uint64) uint64 {
	h := (parent ^ (block+1)*0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9
	h ^= h >> 27
	h *= 0x94D049BB133111EB
	return h ^ h>>31
}

// chain draws a path of a small tree, so that prefixes are shared.
func (x *model) chain(t *rapid.T) []uint64 {
	var chain []uint64
	last := uint64(0)
	for _, b := range rapid.SliceOfN(rapid.Uint64Range(0, 2), 0, 7).Draw(t, "blocks") {
		h := mix(last, b)
		x.parent[h] = last
		chain = append(chain, h)
		last = h
	}
	return chain
}

func (x *model) slot(t *rapid.T) state.Slot {
	return state.Slot(rapid.IntRange(0, modelSlots-1).Draw(t, "slot"))
}

func (x *model) holds(s state.Slot, hash uint64) bool {
	return slices.ContainsFunc(x.held[s], func(h held) bool { return h.hash == hash && h.deadline > x.now })
}

func (x *model) known(hash uint64) bool {
	for s := range state.Slot(modelSlots) {
		if x.holds(s, hash) {
			return true
		}
	}
	return false
}

func (x *model) trim(s state.Slot) {
	if n := len(x.held[s]); x.mirror[s] > 0 && n > x.mirror[s] {
		x.held[s] = x.held[s][n-x.mirror[s]:]
	}
}

func (x *model) drop(s state.Slot, hash uint64) {
	x.held[s] = slices.DeleteFunc(x.held[s], func(h held) bool { return h.hash == hash })
}

func (x *model) Learn(t *rapid.T) {
	s, chain := x.slot(t), x.chain(t)
	gen := x.gen[s] - uint64(rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(t, "old"))
	added := x.m.Learn(s, gen, chain, x.now).Added
	want := 0
	if gen == x.gen[s] {
		for i := len(chain) - 1; i >= 0; i-- {
			if !x.holds(s, chain[i]) {
				want++
			}
			x.drop(s, chain[i])
			x.held[s] = append(x.held[s], held{chain[i], x.now + modelTTL})
		}
		x.trim(s)
	}
	// With a mirror, one piece may evict what the next one adds again, and
	// what is beyond it is not added at all.
	if added != want && x.mirror[s] == 0 || added < want && len(chain) <= x.mirror[s] {
		t.Fatalf("added %d, want %d", added, want)
	}
}

func (x *model) Void(t *rapid.T) {
	s := x.slot(t)
	x.m.Void(s)
	x.gen[s]++
	x.held[s] = nil
	for _, a := range x.awaited[s] {
		a.stale, a.live = a.stale+a.live, 0
	}
}

func (x *model) SetMirror(t *rapid.T) {
	s, n := x.slot(t), rapid.IntRange(0, 12).Draw(t, "blocks")
	x.m.SetMirror(s, n)
	x.mirror[s] = n
	x.trim(s)
}

func (x *model) Expect(t *rapid.T) {
	p := pending{x.slot(t), x.chain(t)}
	if !x.m.Expect(p.s, p.chain) {
		t.Fatal("not recorded")
	}
	x.pending = append(x.pending, p)
	for _, h := range p.chain {
		if x.awaited[p.s][h] == nil {
			x.awaited[p.s][h] = &awaited{}
		}
		x.awaited[p.s][h].live++
	}
}

func (x *model) Unexpect(t *rapid.T) {
	if len(x.pending) == 0 {
		t.Skip("nothing to take back")
	}
	i := rapid.IntRange(0, len(x.pending)-1).Draw(t, "request")
	p := x.pending[i]
	x.pending = slices.Delete(x.pending, i, i+1)
	x.m.Unexpect(p.s, p.chain)
	for _, h := range p.chain {
		if a := x.awaited[p.s][h]; a.stale > 0 {
			a.stale--
		} else {
			a.live--
		}
	}
}

func (x *model) Forget(t *rapid.T) {
	s, chain := x.slot(t), x.chain(t)
	from := rapid.IntRange(0, len(chain)).Draw(t, "from")
	x.m.Forget(s, chain, from)
	for _, h := range chain[from:] {
		x.forgot = true
		x.drop(s, h)
	}
}

func (x *model) Advance(t *rapid.T) {
	x.now += time.Duration(rapid.IntRange(0, 30).Draw(t, "ticks")) * tick
}

func (x *model) Vacuum(t *rapid.T) {
	limit := rapid.IntRange(0, 6).Draw(t, "limit")
	if n, more := x.m.Vacuum(x.now, limit); n > limit || n < limit && more {
		t.Fatalf("removed %d of at most %d, more is %v", n, limit, more)
	}
}

func (x *model) actions(except ...string) map[string]func(*rapid.T) {
	a := map[string]func(*rapid.T){
		"Learn": x.Learn, "LearnMore": x.Learn, "Walk": x.Walk, "WalkMore": x.Walk,
		"Void": x.Void, "SetMirror": x.SetMirror, "Expect": x.Expect, "Unexpect": x.Unexpect,
		"Forget": x.Forget, "Advance": x.Advance, "Vacuum": x.Vacuum, "VacuumAll": x.VacuumAll, "": x.check,
	}
	for _, name := range except {
		delete(a, name)
	}
	return a
}

func small(entries, pairs uint32) *Map {
	return newMap(Config{MaxBytes: MinBytes, TTL: modelTTL}, entries, pairs)
}

func TestMapAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(small(chunkLen, chunkLen))
		x.m.piece = rapid.SampledFrom([]int{1, 2, 3, maxPiece}).Draw(t, "piece")
		t.Repeat(x.actions("Forget"))
		x.finish(t)
	})
}

func TestMapNeverUnderestimatesAfterForget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(small(chunkLen, chunkLen))
		x.m.piece = rapid.SampledFrom([]int{1, 2, 3, maxPiece}).Draw(t, "piece")
		t.Repeat(x.actions())
		x.finish(t)
	})
}

// At its bound the map forgets more than the model, so only what it says of
// itself is compared, and that all it believes the model believes too.
func TestFullMapStaysConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(small(16, 12))
		x.m.piece = rapid.SampledFrom([]int{1, 3, 15}).Draw(t, "piece")
		actions := x.actions("Walk", "WalkMore", "VacuumAll", "Expect", "Learn", "LearnMore")
		actions["Expect"] = func(t *rapid.T) {
			if p := (pending{x.slot(t), x.chain(t)}); x.m.Expect(p.s, p.chain) {
				x.pending = append(x.pending, p)
				for _, h := range p.chain {
					x.awaited[p.s][h] = &awaited{live: 1 << 20}
				}
			}
		}
		actions["Learn"] = func(t *rapid.T) {
			s, chain := x.slot(t), x.chain(t)
			x.m.Learn(s, x.gen[s], chain, x.now)
			for i := len(chain) - 1; i >= 0; i-- {
				x.drop(s, chain[i])
				x.held[s] = append(x.held[s], held{chain[i], x.now + modelTTL})
			}
		}
		actions["Walk"] = func(t *rapid.T) {
			chain := x.chain(t)
			w := walk(x.m, chain, x.now)
			for _, s := range w.Replicas {
				if !x.holds(s, chain[w.Divergence-1]) {
					t.Fatalf("slot %d is a replica of what it has never held", s)
				}
			}
		}
		t.Repeat(actions)
		x.finish(t)
	})
}
