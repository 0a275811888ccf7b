package kvindex

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvca/state"
)

const benchBlock = 16

// feeder stores random runs at a source.
type feeder struct {
	s    *Source
	r    *rand.Rand
	e    Stored
	each int // blocks an event
}

func newFeeder(s *Source, seed uint64, each int) *feeder {
	f := &feeder{s: s, r: rand.New(rand.NewPCG(seed, 1)), each: each}
	f.e = Stored{Hashes: make([]uint64, each), Tokens: make([]uint32, each*benchBlock), BlockSize: benchBlock}
	return f
}

// next makes an event of new blocks.
func (f *feeder) next() *Stored {
	for i := range f.e.Hashes {
		f.e.Hashes[i] = f.r.Uint64()
	}
	f.e.Tokens[0], f.e.Tokens[1] = f.r.Uint32N(1<<17), f.r.Uint32N(1<<17)
	return &f.e
}

func openAll(b *testing.B, x *Index, n int) []*Source {
	b.Helper()
	sources := make([]*Source, n)
	for i := range sources {
		s, err := x.Open(Origin{Slot: state.Slot(i)})
		if err != nil {
			b.Fatal(err)
		}
		s.SetLive(true)
		sources[i] = s
	}
	return sources
}

// fill stores distinct blocks until there are n of them.
func fill(b *testing.B, sources []*Source, n int) {
	b.Helper()
	for i, s := range sources {
		f := newFeeder(s, uint64(i), 16)
		for range n / len(sources) / f.each {
			if err := s.Store(f.next()); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkStore(b *testing.B) {
	for _, each := range []int{1, 16} {
		b.Run(fmt.Sprintf("blocks=%d", each), func(b *testing.B) {
			x := newIndex(b, 4<<30)
			sources := openAll(b, x, 100)
			feeders := make([]*feeder, len(sources))
			for i, s := range sources {
				feeders[i] = newFeeder(s, uint64(i), each)
			}
			b.ReportAllocs()
			n := 0
			defer reportCPU(b)()
			for b.Loop() {
				f := feeders[n%len(feeders)]
				if err := f.s.Store(f.next()); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(n*each)/b.Elapsed().Seconds(), "entries/s")
			b.ReportMetric(float64(x.Stats().Bytes)/float64(x.Stats().Entries), "bytes/entry")
		})
	}
}

// BenchmarkChurn stores blocks and removes the oldest, at sources that are full. An
// event is one block that is stored or removed, as engines count.
func BenchmarkChurn(b *testing.B) {
	for _, c := range []struct{ sources, blocks, each int }{{1, 60_000, 1}, {1, 60_000, 16}, {100, 20_000, 1}, {100, 20_000, 16}} {
		b.Run(fmt.Sprintf("sources=%d/blocks=%d/each=%d", c.sources, c.blocks, c.each), func(b *testing.B) {
			x := newIndex(b, 4<<30)
			var full []*fullSource
			for i, s := range openAll(b, x, c.sources) {
				full = append(full, newFullSource(newFeeder(s, uint64(i), c.each), c.blocks))
			}
			b.ReportAllocs()
			b.ResetTimer()
			defer reportCPU(b)()
			for i := 0; b.Loop(); i++ {
				if full[i%len(full)].turn() != 0 {
					b.Fatal("unknown")
				}
			}
			b.ReportMetric(float64(2*c.each*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// fullSource is a source that removes its oldest blocks for new ones.
type fullSource struct {
	*feeder
	held []uint64 // in the order of a ring
	at   int
}

func newFullSource(f *feeder, blocks int) *fullSource {
	full := &fullSource{feeder: f}
	for len(full.held) < blocks {
		e := f.next()
		f.s.Store(e)
		full.held = append(full.held, e.Hashes...)
	}
	return full
}

// turn returns how many of the removed blocks were not known.
func (f *fullSource) turn() (unknown int) {
	oldest := f.held[f.at : f.at+f.each]
	unknown = f.s.Remove(oldest, GPU)
	e := f.next()
	f.s.Store(e)
	copy(oldest, e.Hashes)
	f.at = (f.at + f.each) % len(f.held)
	return unknown
}

func BenchmarkRemove(b *testing.B) {
	x := newIndex(b, 4<<30)
	s := openAll(b, x, 1)[0]
	f := newFeeder(s, 1, 16)
	var hashes []uint64
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		if len(hashes) == 0 {
			b.StopTimer()
			for range 1 << 14 {
				e := f.next()
				s.Store(e)
				hashes = append(hashes, e.Hashes...)
			}
			b.StartTimer()
		}
		last := len(hashes) - 1
		s.Remove(hashes[last:], GPU)
		hashes = hashes[:last]
	}
}

func BenchmarkReset(b *testing.B) {
	x := newIndex(b, 4<<30)
	sources := openAll(b, x, 100)
	fill(b, sources[1:], 1<<20)
	defer reportCPU(b)()
	for b.Loop() {
		b.StopTimer()
		fill(b, sources[:1], 100_000)
		b.StartTimer()
		sources[0].Reset()
	}
}

// BenchmarkMemory measures an entry.
func BenchmarkMemory(b *testing.B) {
	for _, holders := range []int{1, 2, 100} {
		b.Run(fmt.Sprintf("holders=%d", holders), func(b *testing.B) {
			defer reportCPU(b)()
			for b.Loop() {
				x := newIndex(b, 4<<30)
				sources := openAll(b, x, 100)
				worst := 0.0
				for i := range 1 << 20 / holders / 16 {
					f := newFeeder(nil, uint64(i), 16)
					e := f.next()
					for h := range holders {
						if err := sources[(i+h*50)%100].Store(e); err != nil {
							b.Fatal(err)
						}
						if holders == 100 {
							sources[h].Store(e)
						}
					}
					if st := x.Stats(); i > 1<<19/holders/16 && i%64 == 0 {
						worst = max(worst, float64(st.Bytes)/float64(st.Entries))
					}
				}
				st := x.Stats()
				b.ReportMetric(float64(st.Bytes)/float64(st.Entries), "bytes/entry")
				b.ReportMetric(worst, "worst-bytes/entry")
			}
		})
	}
}

// prompts stores prompts of n tokens at 100 sources, on top of a number of entries,
// and returns them.
func prompts(b *testing.B, kind string, n, entries int) (*Index, []*Prompt) {
	b.Helper()
	x := newIndex(b, 4<<30)
	sources := openAll(b, x, 100)
	fill(b, sources, entries)
	var all []*Prompt
	r := rand.New(rand.NewPCG(7, 7))
	random := func(n int) []uint32 {
		tokens := make([]uint32, n)
		for i := range tokens {
			tokens[i] = r.Uint32N(1 << 17)
		}
		return tokens
	}
	shared := random(n / 2)
	for i := range 100 {
		p := &Prompt{Tokens: append(slices.Clone(shared), random(n-n/2)...)}
		switch kind {
		case "all":
			if i >= 4 {
				continue
			}
			p.Tokens = random(n)
			for _, s := range sources {
				storePrompt(b, s, p)
			}
		case "half":
			storePrompt(b, sources[i], p)
		}
		all = append(all, p)
	}
	return x, all
}

func storePrompt(b *testing.B, s *Source, p *Prompt) {
	n := len(p.Tokens) / benchBlock
	e := Stored{Tokens: p.Tokens[:n*benchBlock], BlockSize: benchBlock, Hashes: s.x.keys(p, benchBlock, nil, 0)}
	if err := s.Store(&e); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{8 << 10, 100_000} {
		for _, kind := range []string{"all", "half", "none"} {
			for _, entries := range []int{1 << 20, 6 << 20} {
				b.Run(fmt.Sprintf("tokens=%d/held=%s/entries=%dMi", n, kind, entries>>20), func(b *testing.B) {
					x, all := prompts(b, kind, n, entries)
					var r Result
					b.ReportAllocs()
					defer reportCPU(b)()
					for i := 0; b.Loop(); i++ {
						x.Lookup(all[i%len(all)], &r)
					}
				})
			}
		}
	}
}

func BenchmarkKeys(b *testing.B) {
	x := newIndex(b, 1<<20)
	p := &Prompt{Tokens: make([]uint32, 8<<10)}
	k := keyer{key: x.key}
	defer reportCPU(b)()
	for b.Loop() {
		k.root(16, "", "")
		for i := range 512 {
			k.next(p.Tokens[i*16:i*16+16], 0)
		}
	}
}

// BenchmarkLookupWhileFed tells how long lookups take while events come in at
// 200,000 a second.
func BenchmarkLookupWhileFed(b *testing.B) {
	x, all := prompts(b, "all", 8<<10, 1<<20)
	sources := openAll(b, x, 4)
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { done <- n }()
		f := newFeeder(sources[0], 99, 1)
		var queue []uint64
		for start := time.Now(); ; {
			select {
			case <-stop:
				return
			default:
			}
			for ; n < int(200*time.Since(start)/time.Millisecond); n++ {
				if n%2 == 0 || len(queue) < 1000 {
					e := f.next()
					f.s.Store(e)
					queue = append(queue, e.Hashes[0])
					continue
				}
				f.s.Remove(queue[:1], GPU)
				queue = queue[1:]
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var r Result
	var took []time.Duration
	start := time.Now()
	defer reportCPU(b)()
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		x.Lookup(all[i%len(all)], &r)
		took = append(took, time.Since(begun))
	}
	elapsed := time.Since(start)
	close(stop)
	b.ReportMetric(float64(<-done)/elapsed.Seconds(), "events/s")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-µs")
	b.ReportMetric(float64(took[len(took)-1])/1e3, "max-µs")
}
