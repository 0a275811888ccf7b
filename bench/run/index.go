package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvca/bench/report"
	"kvca/state"
	"kvca/state/chain"
	"kvca/state/kvindex"
)

// runIndex measures lookups in the precise index while its sources are fed: whether a
// request ever waits for it.
func runIndex(ctx context.Context, args []string) (err error) {
	s := newSettings("index", "")
	sources := s.flags.Int("sources", 100, "engines that publish, 2 to 4000")
	rate := s.flags.Int("rate", 2000, "lookups a second, each of 8,192 tokens")
	events := s.flags.Int("events", 20_000, "blocks a second that all engines together store, and as many that they remove")
	seconds := s.flags.Int("seconds", 10, "length of a run")
	if err := s.parse(args); err != nil {
		return err
	}
	out, err := s.report()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	out.Printf("%d sources; lookups of 8,192 tokens in blocks of 16, hashing included, each at its time; every prompt is held by all sources, half of it by one, or by nobody. Microseconds.\n\n", *sources)
	t := &report.Table{Header: []string{"lookups/s", "blocks/s stored, and removed", "lookups", "p50", "p99", "max", "late", "promised p99"}}
	broken := false
	for _, fed := range []int{0, *events} {
		f := &fedIndex{seed: s.seed}
		if err := f.open(min(max(*sources, 2), 4000)); err != nil {
			return err
		}
		m := f.measure(ctx, *rate, fed, time.Duration(*seconds)*time.Second)
		verdict := judged(m.p99 < mostLookup)
		broken = broken || m.p99 >= mostLookup
		t.Add(*rate, m.fed, m.count, micros(m.p50), micros(m.p99), micros(m.max), m.late, "under 300: "+verdict)
	}
	out.Printf("%s\nLate lookups began more than a millisecond after their time, since the machine did something else.\n", t)
	if broken {
		return errBroken
	}
	return ctx.Err()
}

// mostLookup is what the p99 of a lookup may take.
const mostLookup = 300 * time.Microsecond

func judged(kept bool) string {
	if kept {
		return "kept"
	}
	return "BROKEN"
}

// fedIndex is an index with its sources and the prompts that are looked up.
type fedIndex struct {
	seed    uint64
	index   *kvindex.Index
	sources []*kvindex.Source
	prompts []*kvindex.Prompt
}

const (
	promptTokens = 8192
	indexBlock   = 16
	promptKinds  = 3
	perKind      = 20
)

func (f *fedIndex) open(sources int) (err error) {
	if f.index, err = kvindex.New(kvindex.Config{Key: chain.DeriveKey("bench"), MaxBytes: 4 << 30}); err != nil {
		return err
	}
	for i := range sources {
		src, err := f.index.Open(kvindex.Origin{Slot: state.Slot(i)})
		if err != nil {
			return err
		}
		src.SetLive(true)
		f.sources = append(f.sources, src)
	}
	random := rand.New(rand.NewPCG(f.seed, 1))
	for i := range promptKinds * perKind {
		p := &kvindex.Prompt{Tokens: make([]uint32, promptTokens)}
		for k := range p.Tokens {
			p.Tokens[k] = random.Uint32N(150_000)
		}
		f.prompts = append(f.prompts, p)
		switch i % promptKinds {
		case 0:
			for _, src := range f.sources {
				f.store(src, p.Tokens, uint64(i)<<32)
			}
		case 1:
			f.store(f.sources[i%len(f.sources)], p.Tokens[:promptTokens/2], uint64(i)<<32)
		}
	}
	return nil
}

// store has a source hold a prompt, its blocks named from base on.
func (f *fedIndex) store(src *kvindex.Source, tokens []uint32, base uint64) {
	e := kvindex.Stored{Tokens: tokens, BlockSize: indexBlock}
	for i := range len(tokens) / indexBlock {
		e.Hashes = append(e.Hashes, base+uint64(i)+1)
	}
	_ = src.Store(&e) // there is room, and no parent
}

// fedLookups is what came of a run.
type fedLookups struct {
	count, late   int
	fed           int // blocks a second
	p50, p99, max time.Duration
}

// measure looks up so many prompts a second while the sources store and remove.
func (f *fedIndex) measure(ctx context.Context, rate, events int, length time.Duration) (m fedLookups) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var feeding sync.WaitGroup
	var fed atomic.Int64
	if events > 0 {
		feeding.Go(func() { f.feed(ctx, events, &fed) })
	}
	var took []time.Duration
	var result kvindex.Result
	began := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		} else if wait < -time.Millisecond {
			m.late++
		}
		from := time.Now()
		f.index.Lookup(f.prompts[i%len(f.prompts)], &result)
		took = append(took, time.Since(from))
	}
	feeding.Wait()
	m.fed = int(float64(fed.Load()) / time.Since(began).Seconds())
	slices.Sort(took)
	if m.count = len(took); m.count > 0 {
		m.p50, m.p99, m.max = took[m.count/2], took[m.count*99/100], took[m.count-1]
	}
	return m
}

// feed lets the sources in turn store a step's blocks, sixteen of a new prompt, and
// remove those of long ago.
func (f *fedIndex) feed(ctx context.Context, events int, fed *atomic.Int64) {
	const step, kept = 16, 64
	random := rand.New(rand.NewPCG(f.seed, 2))
	tokens, hashes := make([]uint32, step*indexBlock), make([]uint64, step)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began, round := time.Now(), uint64(0)
	for ctx.Err() == nil {
		for due := int64(time.Since(began).Seconds() * float64(events)); fed.Load() < due; fed.Add(step) {
			src := f.sources[round%uint64(len(f.sources))]
			for i := range tokens {
				tokens[i] = random.Uint32N(150_000)
			}
			turn := round / uint64(len(f.sources))
			for i := range hashes {
				hashes[i] = 1<<60 + turn*step + uint64(i)
			}
			_ = src.Store(&kvindex.Stored{Hashes: hashes, Tokens: tokens, BlockSize: indexBlock})
			if turn >= kept {
				for i := range hashes {
					hashes[i] -= kept * step
				}
				src.Remove(hashes, kvindex.GPU)
			}
			round++
		}
		<-tick.C
	}
}
