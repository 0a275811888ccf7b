package cluster

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/blockmap"
	"kvca/state/chain"
	"kvca/state/ledger"
	"kvca/state/quota"
)

// lonely is a node whose peer is played by the test, by the test's clock.
type lonely struct {
	*Stepped
	now   time.Duration
	peer  link.Hello
	heard []frameOf // what the peer was told
}

func (n *lonely) Carry(_ string, _ link.Lane, kind byte, body []byte) bool {
	n.heard = append(n.heard, frameOf{kind, body})
	return true
}

func (n *lonely) Wait(_ <-chan struct{}, limit time.Duration) bool {
	n.now += limit
	return false
}
func (n *lonely) RTT(string) time.Duration { return 0 }
func (n *lonely) Cut(peer string)          { n.Disconnect(peer) }

func newLonely(t *testing.T) *lonely {
	t.Helper()
	m, err := blockmap.New(blockmap.Config{MaxBytes: 1 << 20, TTL: testTTL})
	if err != nil {
		t.Fatal(err)
	}
	n := &lonely{now: time.Minute}
	n.Stepped, err = NewStepped(Config{
		Node: "node", Cluster: "test", Boot: 1, BlockSize: 512, HashKey: chain.DeriveKey("test"),
		Ledger: ledger.New(), Map: m, Now: func() time.Duration { return n.now }, Rand: func() uint64 { return 1 },
	}, n)
	if err != nil {
		t.Fatal(err)
	}
	n.peer = n.Hello()
	n.peer.Node, n.peer.Boot = "peer", 2
	n.Meet([]link.Hello{n.peer})
	n.Connect(n.peer)
	return n
}

// key is one that is owned here, or by the peer.
func (n *lonely) key(own bool) string {
	for i := 0; ; i++ {
		key := fmt.Sprint("key ", i)
		if (n.view.Load().ownerName(key) == "node") == own {
			return key
		}
	}
}

// pass lets time pass, with all that is due done.
func (n *lonely) pass(span time.Duration) {
	for end := n.now + span; n.now < end; n.now += BeatEvery {
		n.Heard("peer")
		n.Beat()
	}
}

func TestAPeersKeysAreBoundedAndForgotten(t *testing.T) {
	n := newLonely(t)
	n.quotas.most = 1000
	ask := quota.Ask{Seq: 1, Limit: quota.Limit{Requests: math.Inf(1), Tokens: 5, Concurrent: 1 << 20}, Need: quota.Amount{Requests: 1, Slots: 1 << 20}}
	for i := range 3000 {
		n.Deliver("peer", wire.QuotaAsk, wire.AppendQuotaAsk(nil, fmt.Sprint("made up ", i), &ask))
	}
	if got := n.quotas.count.Load(); got != 750 {
		t.Errorf("%d keys are known, want 750", got)
	}
	answer := n.heard[len(n.heard)-1]
	r := wire.NewReader(answer.body)
	r.QuotaKey()
	if a := r.QuotaGrant(); answer.kind != wire.QuotaGrant || !a.Disputed {
		t.Errorf("the peer was told %+v, want that the key is not here", a)
	}
	l := quota.Limit{Requests: 3}
	n.pass(2 * time.Second)
	admitted := 0
	for range 20 {
		if n.Acquire(context.Background(), n.key(true), l, 1).OK {
			admitted++
			n.Release(n.key(true))
		}
	}
	if admitted != 3 {
		t.Errorf("of a key of this node's own %d are admitted, want 3", admitted)
	}
	n.Meet(nil)
	n.Disconnect("peer")
	n.pass(quotaIdle + 10*time.Second)
	if got := n.quotas.count.Load(); got != 0 {
		t.Errorf("%d keys are known when the peer is long gone", got)
	}
}

// What a peer claims to hold shuts a key no longer than it lives, and what it says that
// it gives back is no more than there is room for.
func TestAPeersClaimsOnLimitsGoWithIt(t *testing.T) {
	n := newLonely(t)
	key, l := n.key(true), quota.Limit{Requests: 10, Concurrent: 4}
	acquire := func() quota.Verdict { return n.Acquire(context.Background(), key, l, 1) }
	n.pass(2 * time.Second)
	if v := acquire(); !v.OK {
		t.Fatalf("%+v", v)
	}
	claim := quota.Report{Held: quota.MaxSlots, Back: quota.Amount{Requests: math.MaxInt64, Tokens: math.MinInt64}}
	n.Deliver("peer", wire.QuotaHeld, wire.AppendQuotaReport(wire.AppendQuotaHeld(nil, 0, false), key, &claim))
	if v := acquire(); v.OK || v.Why != quota.Concurrency {
		t.Errorf("all slots are claimed: %+v", v)
	}
	n.Disconnect("peer")
	for range 2 * lease / BeatEvery {
		n.now += BeatEvery
		n.Beat()
	}
	admitted := 0
	for range 50 {
		if acquire().OK {
			admitted++
			n.Release(key)
		}
	}
	if admitted < 5 || admitted > 11 {
		t.Errorf("%d admitted when the peer is gone, want what was saved up: 11 at most", admitted)
	}
}

// Garbage is counted, answers that nobody asked for are nothing.
func TestAnythingMayBeSaidOfLimits(t *testing.T) {
	n := newLonely(t)
	rng := rand.New(rand.NewPCG(9, 9))
	own, theirs := n.key(true), n.key(false)
	l := quota.Limit{Requests: 100, Tokens: 1000, Concurrent: 10}
	for i := range 20_000 {
		kind := wire.QuotaAsk + byte(rng.IntN(3))
		body := make([]byte, rng.IntN(120))
		for i := range body {
			body[i] = byte(rng.Uint32())
		}
		if key := own; rng.IntN(3) > 0 {
			if kind == wire.QuotaGrant {
				key = theirs
			}
			body = append(wire.AppendQuotaKey(nil, key), body...)
			if kind == wire.QuotaHeld {
				body = append(wire.AppendQuotaHeld(nil, rng.Uint64(), rng.IntN(2) == 0), body...)
			}
		}
		n.Deliver("peer", kind, body)
		if i%10 == 0 {
			n.now += time.Millisecond
			for _, key := range []string{own, theirs} {
				if n.Acquire(context.Background(), key, l, 10).OK {
					n.Settle(key, int64(rng.IntN(20)-10))
					n.Release(key)
				}
			}
		}
		if i%100 == 0 {
			n.Heard("peer")
			n.Beat()
		}
	}
	if valueOf(n.metrics.malformed.WithLabelValues("malformed")) == 0 {
		t.Error("garbage was not counted")
	}
	for _, s := range n.LimitStatus(100) {
		if s.Here.Concurrent != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// A peer of an older version does not know of limits: what it owns is held by shares,
// and its silence there does not make it one that hangs.
func TestAnOlderOwnerIsDoneWithout(t *testing.T) {
	n := newLonely(t)
	l := quota.Limit{Requests: 100}
	admitted, began := 0, n.now
	for n.now < began+5*time.Second {
		if v := n.Acquire(context.Background(), n.key(false), l, 1); v.OK {
			admitted++
		} else if !v.Degraded {
			t.Fatalf("%+v", v)
		}
		n.now += time.Millisecond
	}
	if want := 5 * 50.0; !near(float64(admitted), want) {
		t.Errorf("%d admitted in 5s, want about %v: half of the limit", admitted, want)
	}
	if p := n.peers.get("peer"); p.patience.hung(n.now) {
		t.Error("it is not asked for reservations any more")
	}
}
