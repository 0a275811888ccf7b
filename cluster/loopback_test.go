package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"kvca/state"
	"kvca/state/blockmap"
	"kvca/state/chain"
	"kvca/state/ledger"
)

// loopback runs nodes over real sockets, for benchmarks.
func loopback(b testing.TB, count, backends int) []*testNode {
	return loopbackWith(b, count, backends, func(*Config) {})
}

func loopbackWith(b testing.TB, count, backends int, edit func(*Config)) []*testNode {
	w := &world{rng: rand.New(rand.NewPCG(1, 2))}
	var join []string
	for i := range count {
		m, err := blockmap.New(blockmap.Config{MaxBytes: 64 << 20, TTL: testTTL})
		if err != nil {
			b.Fatal(err)
		}
		link, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		n := &testNode{w: w, name: fmt.Sprintf("n%d", i), l: ledger.New(), m: m}
		n.fleet = &testFleet{n: n, drained: map[string]bool{}, probed: map[string]int{}, slots: map[string]state.Slot{}}
		epoch := time.Now()
		cfg := Config{
			Node: n.name, Cluster: "bench", Boot: uint64(i + 1), BlockSize: 512, HashKey: chain.DeriveKey("bench"),
			Gossip: "127.0.0.1:0", Link: link, Join: join, Ledger: n.l, Map: m, Fleet: n.fleet,
			Logger: slog.New(slog.DiscardHandler), Now: func() time.Duration { return time.Since(epoch) }, Rand: rand.Uint64,
		}
		edit(&cfg)
		n.c, err = New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		n.loads, n.locs = n.c.Loads(), n.c.Locations()
		ctx, cancel := context.WithCancel(context.Background())
		n.done = make(chan struct{})
		go func() {
			defer close(n.done)
			n.c.Run(ctx)
		}()
		b.Cleanup(func() { cancel(); <-n.done })
		for j := range backends {
			n.fleet.Add(Backend{ID: backendID(j)})
		}
		join = append(join, n.c.Status().Members[0].Address)
		w.nodes = append(w.nodes, n)
		n.alive = true
	}
	for end := time.Now().Add(20 * time.Second); w.together() != ""; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal(w.together())
		}
	}
	return w.nodes
}

// One request's reservation, begin and release, by callers spread over the nodes.
func BenchmarkReservation(b *testing.B) {
	for _, backends := range []int{8, 240} {
		for _, callers := range []int{1, 32} {
			b.Run(fmt.Sprintf("nodes=3/backends=%d/callers=%d", backends, callers), func(b *testing.B) {
				nodes := loopback(b, 3, backends)
				var ids atomic.Uint64
				b.ReportAllocs()
				b.SetParallelism(max(callers/2, 1))
				b.ResetTimer()
				call := func(n *testNode) {
					o := &ledger.Order{ID: ledger.ID{ids.Add(1), 9}, ActiveBytes: 512, LoadScale: 1, Tie: rand.Uint64()}
					for i := range backends {
						o.Candidates = append(o.Candidates, ledger.Candidate{Slot: state.Slot(i), Slowness: 1, Novel: 4096, Cost: 16384})
					}
					n.loads.Reserve(context.Background(), o)
					n.loads.Prefilled(o.ID)
					n.loads.Release(o.ID)
				}
				if callers == 1 {
					for i := 0; b.Loop(); i++ {
						call(nodes[i%3])
					}
				} else {
					b.RunParallel(func(pb *testing.PB) {
						for i := rand.IntN(3); pb.Next(); i++ {
							call(nodes[i%3])
						}
					})
				}
				degraded := uint64(0)
				for _, n := range nodes {
					degraded += n.c.count.degraded.Load()
				}
				b.ReportMetric(float64(degraded)/float64(b.N), "degraded/op")
			})
		}
	}
}
