package blockmap

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvca/state"
)

func heapAlloc() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// One location a block is the dearest case, since further ones need no block.
func TestLocationTakesAtMost48BytesAllIncluded(t *testing.T) {
	const maxBytes = 32 << 20
	before := heapAlloc()
	m, err := New(Config{MaxBytes: maxBytes, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := seeded()
	for m.Stats().Evicted == 0 {
		learn(m, state.Slot(r.IntN(100)), random(r, 64), 0)
	}
	s := m.Stats()
	perLocation := float64(heapAlloc()-before) / float64(s.Locations)
	t.Logf("%d locations, %.1f bytes each", s.Locations, perLocation)
	if s.Blocks != s.Locations || perLocation > 48 {
		t.Errorf("%d locations of %d blocks take %.1f bytes each", s.Locations, s.Blocks, perLocation)
	}
	if share := int64(s.Locations) * bytesPerLocation; share < maxBytes*7/8*99/100 {
		t.Errorf("locations use %d bytes, their share is %d", share, maxBytes*7/8)
	}
	runtime.KeepAlive(m)
}

func TestFloodOfDistinctPromptsStaysWithinTheBound(t *testing.T) {
	const maxBytes, base = 4 << 20, 256 << 10
	before := heapAlloc()
	m, err := New(Config{MaxBytes: maxBytes, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := seeded()
	now, added, refused := time.Duration(0), 0, 0
	for i := 0; added < 4*m.capacity(); i++ {
		s := state.Slot(i % 20)
		chain := random(r, 1+r.IntN(600))
		now += tick
		if !m.Expect(s, chain) { // nobody takes it back: the tentative share floods too
			refused++
		}
		added += learn(m, s, chain, now)
		if s := m.Stats(); s.Bytes > maxBytes {
			t.Fatalf("%d bytes in use, the bound is %d", s.Bytes, maxBytes)
		}
		if i%500 == 0 {
			if used := heapAlloc() - before; used > maxBytes+base {
				t.Fatalf("the heap has grown by %d, the bound is %d", used, maxBytes)
			}
		}
	}
	s := m.Stats()
	if used := heapAlloc() - before; used > maxBytes+base {
		t.Errorf("the heap has grown by %d, the bound is %d", used, maxBytes)
	}
	if refused == 0 || s.Evicted < uint64(3*m.capacity()) || s.Locations < m.capacity()-maxPiece {
		t.Errorf("%d refused, stats are %+v", refused, s)
	}
	ensure(t, m)
	m.Vacuum(now+time.Hour, 1<<30)
	if s := m.Stats(); s.Locations != 0 || s.Blocks != 0 || s.Bytes != int64(s.Tentative)*(bytesPerPair+bytesPerAwaited) {
		t.Errorf("left are %+v", s)
	}
}

// What a peer tells is bounded as what clients send.
func TestFloodOfMergedRunsStaysWithinTheBound(t *testing.T) {
	const maxBytes, base = 4 << 20, 256 << 10
	before := heapAlloc()
	m, err := New(Config{MaxBytes: maxBytes, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := seeded()
	now := time.Duration(0)
	for added, i := 0, 0; added < 3*m.capacity(); i++ {
		now += tick
		run := Run{Parent: r.Uint64(), Hashes: random(r, 1+r.IntN(600)), Idle: time.Duration(r.IntN(100)) * time.Second}
		added += merge(m, state.Slot(i%20), run, i%4 > 0, now)
		if s := m.Stats(); s.Bytes > maxBytes {
			t.Fatalf("%d bytes in use, the bound is %d", s.Bytes, maxBytes)
		}
	}
	if used := heapAlloc() - before; used > maxBytes+base {
		t.Errorf("the heap has grown by %d, the bound is %d", used, maxBytes)
	}
	ensure(t, m)
	if n := merge(m, 1, Run{Hashes: random(r, 3*m.capacity())}, true, now); n < m.capacity() {
		t.Errorf("added %d of a run longer than the map", n)
	}
	ensure(t, m)
	m.Vacuum(now+time.Hour, 1<<30)
	if s := m.Stats(); s.Locations != 0 || s.Blocks != 0 {
		t.Errorf("left are %+v", s)
	}
}

func TestFullMapEvictsTheSoonestToExpireOfAllBackends(t *testing.T) {
	m := newMap(Config{MaxBytes: MinBytes, TTL: time.Minute}, 301, chunkLen)
	r := seeded()
	chains := make([][]uint64, 3)
	for i := range chains {
		chains[i] = random(r, 100)
		learn(m, state.Slot(i), chains[i], time.Duration(i)*tick)
	}
	learn(m, 0, chains[0], 10*tick) // now the second is the oldest
	learn(m, 3, random(r, 150), 11*tick)
	for i, want := range []int{100, 0, 50} {
		if got := walk(m, chains[i], 11*tick).Matched(state.Slot(i)); got != want {
			t.Errorf("slot %d matches %d, want %d", i, got, want)
		}
	}
	m.Void(0) // what is void goes before what is older
	learn(m, 3, random(r, 100), 12*tick)
	if got := walk(m, chains[2], 12*tick).Matched(2); got != 50 {
		t.Errorf("slot 2 matches %d, want 50", got)
	}
	ensure(t, m)
}

func TestPopularBlocksAreRemovedOneByOne(t *testing.T) {
	m := testMap(t, 100*tick)
	chain := random(seeded(), 8)
	for s := range state.Slot(2000) {
		learn(m, s, chain, time.Duration(s%50)*tick)
	}
	ensure(t, m)
	if w := walk(m, chain, 50*tick); len(w.Replicas) != 2000 {
		t.Fatalf("%d replicas, want 2000", len(w.Replicas))
	}
	if n, _ := m.Vacuum(120*tick, 1<<30); n != 21*40*8 {
		t.Fatalf("vacuum removed %d, want %d", n, 21*40*8)
	}
	ensure(t, m)
	if w := walk(m, chain, 120*tick); len(w.Replicas) != 2000-21*40 {
		t.Fatalf("%d replicas, want %d", len(w.Replicas), 2000-21*40)
	}
}

// Deadlines are 32 bits of ticks, which come round every 52 days.
func TestDeadlinesComeRound(t *testing.T) {
	m := testMap(t, time.Minute)
	chain := random(seeded(), 10)
	for now := 1<<32*tick - 2*time.Minute; now < 1<<32*tick+2*time.Minute; now += 20 * time.Second {
		learn(m, 1, chain, now)
		if at, ok := m.NextDeadline(); !ok || at-now < time.Minute-2*tick || at-now > time.Minute {
			t.Fatalf("next deadline is %v after now", at-now)
		}
		if n, _ := m.Vacuum(now+59*time.Second, 100); n != 0 {
			t.Fatalf("removed %d before their time", n)
		}
		if got := walk(m, chain, now+59*time.Second).Matched(1); got != 10 {
			t.Fatalf("matched %d", got)
		}
		if got := walk(m, chain, now+61*time.Second).Matched(1); got != 0 {
			t.Fatalf("matched %d after the TTL", got)
		}
		ensure(t, m)
	}
}

func TestConcurrentUseLeavesNothingBehind(t *testing.T) {
	m, err := New(Config{MaxBytes: MinBytes, TTL: 50 * tick})
	if err != nil {
		t.Fatal(err)
	}
	r := seeded()
	chains := make([][]uint64, 40)
	trunk := random(r, 40)
	for i := range chains {
		chains[i] = append(append([]uint64{}, trunk[:i]...), random(r, 1+r.IntN(2500))...)
	}
	var clock atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() { write(m, chains, g, &clock) })
		wg.Go(func() { read(m, chains, g, &clock) })
	}
	wg.Wait()
	ensure(t, m)
	m.Vacuum(time.Duration(clock.Load())*tick+50*tick, 1<<30)
	if s := m.Stats(); s.Bytes != 0 || s.Locations != 0 || s.Blocks != 0 || s.Tentative != 0 {
		t.Errorf("left are %+v", s)
	}
	ensure(t, m)
}

func write(m *Map, chains [][]uint64, g int, clock *atomic.Int64) {
	for i := range 150 {
		now := time.Duration(clock.Add(1)) * tick
		s, chain := state.Slot((g*7+i)%13), chains[(g*11+i*3)%len(chains)]
		expected := m.Expect(s, chain)
		switch i % 10 {
		case 0:
			m.Void(s)
		case 1:
			m.SetMirror(s, (i*13)%900)
		case 2:
			m.Forget(s, chain, i%40)
		case 3:
			m.Vacuum(now, 300)
		case 4, 5:
			from := (i * 17) % len(chain)
			m.Merge(s, m.Generation(s), Run{Parent: chain[from/2], Hashes: chain[from:], Idle: 3 * tick}, i%20 > 9, now)
		}
		m.Learn(s, m.Generation(s), chain, now)
		if expected {
			m.Unexpect(s, chain)
		}
	}
}

func read(m *Map, chains [][]uint64, g int, clock *atomic.Int64) {
	var w Walk
	var d Digest
	var c Cursor
	for i := range 600 {
		now := time.Duration(clock.Load()) * tick
		if m.Page(&c, state.Slot(g), nil, time.Hour, now, 100, func(_, _ uint64, _ time.Duration) {}) {
			c = Cursor{}
		}
		chain := chains[(g*5+i)%len(chains)]
		m.Walk(chain, now, &w)
		if w.Divergence > 0 && len(w.Replicas) == 0 {
			panic("a known block without replicas")
		}
		for _, s := range w.Holders() {
			if w.Expected(s) < w.Matched(s) || w.Expected(s) == 0 || w.Expected(s) > len(chain) {
				panic("depths out of order")
			}
			m.Age(s, now)
		}
		if i%50 == 0 {
			m.Stats()
			m.NextDeadline()
			m.Held(state.Slot(g))
			m.Digest(&d, now, keyed(time.Hour))
		}
	}
}
