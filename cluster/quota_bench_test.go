package cluster

import (
	"context"
	"testing"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/blockmap"
	"kvca/state/chain"
	"kvca/state/ledger"
	"kvca/state/quota"
)

// generous is a peer that owns every key and gives what is wanted, at once.
type generous struct {
	n       *Stepped
	answers [][]byte
}

func (g *generous) Carry(_ string, _ link.Lane, kind byte, body []byte) bool {
	if kind == wire.QuotaAsk {
		r := wire.NewReader(body)
		key, a := string(r.QuotaKey()), r.QuotaAsk()
		answer := wire.QuotaAnswer{Grant: quota.Grant{Seq: a.Seq, Limit: a.Limit, Given: a.Want}}
		g.answers = append(g.answers, wire.AppendQuotaGrant(nil, key, &answer))
	}
	return true
}

func (g *generous) Wait(<-chan struct{}, time.Duration) bool {
	for _, body := range g.answers {
		g.n.Deliver("peer", wire.QuotaGrant, body)
	}
	g.answers = g.answers[:0]
	return true
}
func (g *generous) RTT(string) time.Duration { return 0 }
func (g *generous) Cut(string)               {}

func newGenerous(tb testing.TB) (n *Stepped, key string) {
	tb.Helper()
	m, err := blockmap.New(blockmap.Config{MaxBytes: 1 << 20, TTL: testTTL})
	if err != nil {
		tb.Fatal(err)
	}
	g, began := &generous{}, time.Now()
	g.n, err = NewStepped(Config{
		Node: "node", Cluster: "test", Boot: 1, BlockSize: 512, HashKey: chain.DeriveKey("test"),
		Ledger: ledger.New(), Map: m, Now: func() time.Duration { return time.Since(began) }, Rand: func() uint64 { return 1 },
	}, g)
	if err != nil {
		tb.Fatal(err)
	}
	peer := g.n.Hello()
	peer.Node, peer.Boot = "peer", 2
	g.n.Meet([]link.Hello{peer})
	g.n.Connect(peer)
	for _, key = range []string{"a", "b", "c", "d", "e", "f", "g"} {
		if g.n.view.Load().ownerName(key) == "peer" {
			break
		}
	}
	return g.n, key
}

// A request within what this node has in hand: what nearly every one costs.
func BenchmarkAcquireInHand(b *testing.B) {
	n, key := newGenerous(b)
	l := quota.Limit{Requests: 1e9, Tokens: 1e12, Concurrent: 1000}
	b.ReportAllocs()
	for b.Loop() {
		if v := n.Acquire(context.Background(), key, l, 100); !v.OK || v.Degraded {
			b.Fatalf("%+v", v)
		}
		n.Release(key)
	}
}

// The same at the node that owns the key, and at a node that is alone.
func BenchmarkAcquireAtTheOwner(b *testing.B) {
	n, key := newGenerous(b)
	n.Meet(nil)
	l := quota.Limit{Requests: 1e9, Tokens: 1e12, Concurrent: 1000}
	time.Sleep(10 * time.Millisecond)
	b.ReportAllocs()
	for b.Loop() {
		if v := n.Acquire(context.Background(), key, l, 100); !v.OK || v.Degraded {
			b.Fatalf("%+v", v)
		}
		n.Release(key)
	}
}

func TestAcquireInHandAllocatesNothing(t *testing.T) {
	n, key := newGenerous(t)
	l := quota.Limit{Requests: 1e6, Tokens: 1e9, Concurrent: 1000}
	n.Acquire(context.Background(), key, l, 100)
	s := n.quotas.shard(key)
	k := s.keys[key]
	a := k.hold.Ask(n.cfg.Now(), 0, quota.Amount{})
	k.hold.Apply(n.cfg.Now(), &quota.Grant{Seq: a.Seq, Limit: l, Given: quota.Amount{Requests: 1e5, Tokens: 1e8, Slots: 10}})
	if got := testing.AllocsPerRun(1000, func() {
		n.Acquire(context.Background(), key, l, 100)
		n.Settle(key, -5)
		n.Release(key)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
