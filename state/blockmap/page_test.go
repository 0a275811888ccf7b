package blockmap

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/state"
)

// pull copies what from holds in the given buckets to to, as repair does: pages
// become runs, which are merged without extending anything.
func pull(to, from *Map, s state.Slot, b *Buckets, now time.Duration, limit int) (added int) {
	var r Run
	flush := func() {
		added += merge(to, s, r, false, now)
		r = Run{Hashes: r.Hashes[:0]}
	}
	var c Cursor
	for done := false; !done; {
		done = from.Page(&c, s, b, 24*time.Hour, now, limit, func(parent, hash uint64, idle time.Duration) {
			if n := len(r.Hashes); n > 0 && (r.Hashes[n-1] != parent || r.Idle != idle) {
				flush()
			}
			if len(r.Hashes) == 0 {
				r.Parent, r.Idle = parent, idle
			}
			r.Hashes = append(r.Hashes, hash)
		})
		flush()
	}
	return added
}

func TestPageTellsNewestFirstAndParentsBeforeTheirChildren(t *testing.T) {
	m := testMap(t, time.Minute)
	r := seeded()
	trunk := random(r, 40)
	want := map[uint64]uint64{}
	for i := range 5 {
		chain := append(slices.Clone(trunk), random(r, 200)...)
		learn(m, 1, chain, time.Duration(i)*tick)
		learn(m, 2, chain[:100], time.Duration(i)*tick)
		for j, hash := range chain[:100] {
			if j > 0 {
				want[hash] = chain[j-1]
			} else {
				want[hash] = 0
			}
		}
	}
	for _, limit := range []int{1, 7, 1000} {
		told, last := map[uint64]bool{}, time.Duration(0)
		var c Cursor
		for !m.Page(&c, 2, nil, time.Hour, 10*tick, limit, func(parent, hash uint64, idle time.Duration) {
			if p, ok := want[hash]; !ok || p != parent || parent != 0 && !told[parent] || told[hash] {
				t.Fatalf("told %x of %x, want it of %x after it", hash, parent, p)
			}
			if told[hash] = true; idle < last {
				t.Fatal("not newest first")
			}
			last = idle
		}) {
		}
		if len(told) != len(want) {
			t.Errorf("told %d, want %d", len(told), len(want))
		}
	}
}

func TestPageTellsOnlyTheBucketsAskedFor(t *testing.T) {
	m := testMap(t, time.Minute)
	chain := random(seeded(), 500)
	learn(m, 1, chain, 0)
	var b Buckets
	for _, hash := range chain[:5] {
		b.Set(Bucket(hash))
	}
	var c Cursor
	n := 0
	m.Page(&c, 1, &b, time.Hour, 0, 1000, func(_, hash uint64, _ time.Duration) {
		if n++; !b.Has(Bucket(hash)) {
			t.Errorf("%x was not asked for", hash)
		}
	})
	if n < 5 || n > 20 {
		t.Errorf("told %d", n)
	}
}

func TestPageOfAVoidedSlotEnds(t *testing.T) {
	m := testMap(t, time.Minute)
	learn(m, 1, random(seeded(), 100), 0)
	var c Cursor
	none := func(uint64, uint64, time.Duration) {}
	if m.Page(&c, 1, nil, time.Hour, 0, 10, none) {
		t.Fatal("done after 10")
	}
	m.Void(1)
	learn(m, 1, random(seeded(), 100), 0)
	if !m.Page(&c, 1, nil, time.Hour, 0, 10, none) || !m.Page(new(Cursor), 7, nil, time.Hour, 0, 10, none) {
		t.Fatal("there is more of what is void, or was never known")
	}
}

// What is neither used nor removed while it is paged is told.
func TestPageTellsAllThatStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := small(2*chunkLen, chunkLen)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var chains [][]uint64
		now := time.Duration(0)
		for range rapid.IntRange(1, 20).Draw(t, "chains") {
			chains = append(chains, random(r, 1+r.IntN(60)))
			learn(m, 1, chains[len(chains)-1], now)
			now += time.Duration(r.IntN(2)) * tick
		}
		touched, told := map[int]bool{}, map[uint64]bool{}
		limit := rapid.IntRange(1, 300).Draw(t, "limit")
		var c Cursor
		for i := 0; ; i++ {
			if m.Page(&c, 1, nil, modelTTL, now, limit, func(_, hash uint64, _ time.Duration) { told[hash] = true }) {
				break
			}
			if i >= maxRestarts {
				continue
			}
			switch k := r.IntN(len(chains)); rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				touched[k] = true
				learn(m, 1, chains[k], now)
			case 1:
				touched[k] = true
				m.Forget(1, chains[k], r.IntN(len(chains[k])))
			case 2:
				learn(m, 2, chains[k], now)
			}
		}
		for k, chain := range chains {
			for _, hash := range chain {
				if !touched[k] && !told[hash] {
					t.Fatalf("a block of chain %d was not told", k)
				}
			}
		}
	})
}

func TestPagesMakeAnEmptyMapTheSame(t *testing.T) {
	a, b := testMap(t, time.Hour), testMap(t, time.Hour)
	r := seeded()
	now := time.Duration(0)
	trunk := random(r, 100)
	for i := range 300 {
		chain := append(slices.Clone(trunk[:r.IntN(100)]), random(r, 1+r.IntN(200))...)
		learn(a, state.Slot(i%7), chain, now)
		now += time.Duration(r.IntN(3)) * tick
	}
	for s := range state.Slot(7) {
		pull(b, a, s, nil, now, 100)
	}
	ensure(t, b)
	if _, n := digest(a, now).Diff(digest(b, now)); n != 0 {
		t.Errorf("%d buckets differ", n)
	}
	ours, theirs := locations(a, now), locations(b, now)
	for l, deadline := range ours {
		if theirs[l] != deadline {
			t.Fatalf("deadline of %v is %d, want %d", l, theirs[l], deadline)
		}
	}
	for id := uint32(1); id < b.incs.used; id++ {
		if b.incs.at(id).loose {
			t.Error("a list is in no strict order")
		}
	}
}

// While both nodes learn, their differences are repaired again and again. Once
// they are at rest, one round each way makes them the same.
func TestRepairMakesTwoMapsTheSameOnceTheyAreAtRest(t *testing.T) {
	nodes := [2]*Map{testMap(t, time.Hour), testMap(t, time.Hour)}
	const slots = 5
	repair := func(to, from *Map, now time.Duration) {
		b, _ := digest(from, now).Diff(digest(to, now))
		for s := range state.Slot(slots) {
			pull(to, from, s, &b, now, 50)
		}
	}
	r := seeded()
	chains := make([][]uint64, 60)
	trunk := random(r, 50)
	for i := range chains {
		chains[i] = append(slices.Clone(trunk[:r.IntN(50)]), random(r, 1+r.IntN(300))...)
	}
	var wg sync.WaitGroup
	for n, m := range nodes {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 9))
			for i := range 400 {
				now := time.Duration(i) * tick
				s, chain := state.Slot(r.IntN(slots)), chains[r.IntN(len(chains))]
				m.Learn(s, 0, chain[:1+r.IntN(len(chain))], now)
				if r.IntN(10) == 0 {
					m.Forget(s, chain, r.IntN(len(chain)))
				}
			}
		})
		wg.Go(func() {
			for i := range 10 {
				repair(nodes[n], nodes[1-n], time.Duration(i*40)*tick)
			}
		})
	}
	wg.Wait()
	now := 400 * tick
	repair(nodes[0], nodes[1], now)
	repair(nodes[1], nodes[0], now)
	if !sameSet(locations(nodes[0], now), locations(nodes[1], now)) {
		t.Error("the sets differ")
	}
	if _, n := digest(nodes[0], now).Diff(digest(nodes[1], now)); n != 0 {
		t.Errorf("%d buckets differ", n)
	}
	ensure(t, nodes[0])
	ensure(t, nodes[1])
}
