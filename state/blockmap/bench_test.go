package blockmap

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kvca/state"
)

// full makes a map of 1 Mi blocks in conversations of n, on 1,000 backends.
func full(b *testing.B, n int) (*Map, [][]uint64) {
	b.Helper()
	m, err := New(Config{MaxBytes: 96 << 20, TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	chains := make([][]uint64, 1<<20/n)
	for i := range chains {
		chains[i] = random(r, n)
		learn(m, state.Slot(i%1000), chains[i], time.Duration(i)*time.Microsecond)
	}
	return m, chains
}

func BenchmarkWalk(b *testing.B) {
	for _, n := range []int{64, 800} {
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			m, chains := full(b, n)
			var w Walk
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if m.Walk(chains[i*7919%len(chains)], time.Second, &w); w.Divergence != n {
					b.Fatal(w.Divergence)
				}
			}
		})
	}
}

// BenchmarkWalkScattered walks chains whose blocks lie as far apart as can be.
func BenchmarkWalkScattered(b *testing.B) {
	m, err := New(Config{MaxBytes: 96 << 20, TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	chains := make([][]uint64, 1<<14)
	for i := range chains {
		chains[i] = random(r, 64)
		m.slots.make(state.Slot(i % 1000))
	}
	for n := range 64 {
		for _, i := range r.Perm(len(chains)) {
			m.learnPiece(state.Slot(i%1000), 0, chains[i], n, n+1, 0, &News{})
		}
	}
	var w Walk
	for i := 0; b.Loop(); i++ {
		if m.Walk(chains[i*7919%len(chains)], time.Second, &w); w.Divergence != 64 {
			b.Fatal(w.Divergence)
		}
	}
}

func BenchmarkWalkUnknown(b *testing.B) {
	m, chains := full(b, 64)
	var w Walk
	chain := make([]uint64, 64)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		chain[0] = chains[i*7919%len(chains)][0] + 1
		m.Walk(chain, time.Second, &w)
	}
}

// BenchmarkWalkHot walks a system prompt of 64 blocks that every backend holds,
// with a conversation behind it.
func BenchmarkWalkHot(b *testing.B) {
	for _, backends := range []int{1000, 4000} {
		for _, requests := range []int{0, 1} {
			b.Run(fmt.Sprintf("backends=%d/tentative=%d", backends, backends*requests), func(b *testing.B) {
				m, chain := hot(b, backends, requests)
				var w Walk
				b.ReportAllocs()
				for b.Loop() {
					if m.Walk(chain, time.Second, &w); len(w.Holders()) != backends {
						b.Fatal(len(w.Holders()))
					}
				}
			})
		}
	}
}

func hot(b *testing.B, backends, requests int) (*Map, []uint64) {
	m, _ := full(b, 64)
	r := rand.New(rand.NewPCG(5, 6))
	prompt := random(r, 64)
	var chain []uint64
	for s := range state.Slot(backends) {
		chain = append(append([]uint64{}, prompt...), random(r, 8)...)
		learn(m, s, chain, time.Second)
		for range requests {
			m.Expect(s, prompt[:32]) // as much as fits the bound at 4,000
		}
	}
	return m, chain
}

func BenchmarkLearn(b *testing.B) {
	b.Run("refresh=64", func(b *testing.B) {
		m, chains := full(b, 64)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			i := i * 7919 % len(chains)
			m.Learn(state.Slot(i%1000), 0, chains[i], time.Second)
		}
	})
	b.Run("new=64/full", func(b *testing.B) {
		m, _ := full(b, 64)
		r := rand.New(rand.NewPCG(7, 8))
		for m.Stats().Evicted == 0 {
			learn(m, state.Slot(r.IntN(1000)), random(r, 64), time.Second)
		}
		chain := make([]uint64, 64)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			for j := range chain {
				chain[j] = r.Uint64()
			}
			m.Learn(state.Slot(i%1000), 0, chain, 2*time.Second)
		}
	})
	b.Run("hot=64", func(b *testing.B) {
		m, chain := hot(b, 1000, 0)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			m.Learn(state.Slot(i%1000), 0, chain[:64], time.Second)
		}
	})
}

func BenchmarkExpect(b *testing.B) {
	m, chain := hot(b, 1000, 1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s := state.Slot(i % 1000)
		if m.Expect(s, chain) {
			m.Unexpect(s, chain)
		}
	}
}

func BenchmarkAge(b *testing.B) {
	m := testMap(b, time.Minute)
	for s := range state.Slot(4000) {
		m.SetMirror(s, 1)
		learn(m, s, []uint64{uint64(s)}, 0)
	}
	for i := 0; b.Loop(); i++ {
		if _, full := m.Age(state.Slot(i%4000), time.Second); !full {
			b.Fatal("not full")
		}
	}
}

func BenchmarkVacuum(b *testing.B) {
	m, _ := full(b, 64)
	now := 2 * time.Hour
	b.ReportAllocs()
	for b.Loop() {
		if n, _ := m.Vacuum(now, 64); n < 64 {
			b.StopTimer()
			m, _ = full(b, 64)
			b.StartTimer()
		}
	}
}
