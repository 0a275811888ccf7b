package engine

import (
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkConversationTrace simulates an hour's worth of long conversations: 12,000 requests of 12,000 tokens with 343 answered,
// 3.4 a second over 8 engines, in blocks of 512 tokens. One operation is the whole trace.
func BenchmarkConversationTrace(b *testing.B) {
	const requests, engines = 12_000, 8
	b.ReportAllocs()
	for b.Loop() {
		rng := rand.New(rand.NewPCG(1, 2))
		fleet := make([]*Engine, engines)
		for i := range fleet {
			fleet[i] = New(with(Profile70B, func(p *Profile) { p.BlockTokens = 512 }))
		}
		at, events := time.Duration(0), 0
		emit := func(Event) { events++ }
		for id := range uint64(requests) {
			at += time.Duration(rng.ExpFloat64() * float64(time.Second) / 3.4)
			for _, e := range fleet {
				e.Advance(at, emit)
			}
			n := 1000 + rng.IntN(22_000)
			fleet[rng.IntN(engines)].Submit(at, Request{
				ID: id, Blocks: chainOf(rng.Uint64N(6000), n/512), PromptTokens: n, OutputTokens: 1 + rng.IntN(686),
			})
		}
		for _, e := range fleet {
			for t, ok := e.Next(); ok; t, ok = e.Next() {
				e.Advance(t, emit)
			}
		}
		if events != 2*requests {
			b.Fatalf("%d events", events)
		}
	}
	b.ReportMetric(float64(requests*b.N)/b.Elapsed().Seconds(), "requests/s")
}

// BenchmarkSmallBlocks is one engine at the unit that real engines use: long prompts in blocks of 16 tokens.
func BenchmarkSmallBlocks(b *testing.B) {
	b.ReportAllocs()
	e := New(Profile8B)
	id := uint64(0)
	for b.Loop() {
		id++
		at, _ := e.Next()
		e.Submit(at, Request{ID: id, Blocks: chainOf(id%64, 750), PromptTokens: 12_005, OutputTokens: 343})
		for t, ok := e.Next(); ok; t, ok = e.Next() {
			e.Advance(t, func(Event) {})
		}
	}
}
