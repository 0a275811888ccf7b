package cluster

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"kvca/cluster/wire"
	"kvca/state/quota"
	"kvca/state/ring"
)

// Limits that hold over the whole cluster. Each key, a tenant or a tenant's model, is
// owned by one node, which hands its limit out in slices; see state/quota. A request
// is decided from what this node has in hand, and where that is too little the owner
// is asked, one question a key at a time: those who come meanwhile wait for the same
// answer. Who can't be had within the budget is done without: this node then goes by
// the limit divided by the live members.
const (
	// maxQuotaKeys bounds the keys that are known here; what peers say makes no more
	// than three quarters of them. A key for which there is no room is not limited.
	maxQuotaKeys = 1 << 16
	// quotaIdle is after how long without use a key is forgotten.
	quotaIdle = 30 * time.Second
	// quotaShards spread the keys over as many locks.
	quotaShards = 64
	// maxQuotaTokens is what a request may cost at most.
	maxQuotaTokens = 1 << 40
)

// quotas are the keys of limits that this node has to do with.
type quotas struct {
	c       *Cluster
	seed    maphash.Seed
	shards  [quotaShards]quotaShard
	count   atomic.Int64
	most    int64 // keys, less in tests
	waits   sync.Pool
	metrics *quotaMetrics
}

// quotaShard is some of the keys. Its lock guards all of them; links, the view and
// patience have their own, taken inside.
type quotaShard struct {
	mu    sync.Mutex
	keys  map[string]*quotaKey
	busy  []*quotaKey // those that have something in hand
	frame []byte      // scratch
}

// quotaKey is one key.
type quotaKey struct {
	name string
	hash uint64

	// term is the view for which owner and own hold; owner is nil where own.
	term  uint64
	owner *peer
	own   bool

	hold  quota.Holder
	books *quota.Owner // where this node owns it
	alone quota.Book   // for while the owner can't be had

	waiting  []*quotaWait
	asked    time.Duration // when the question under way was sent
	disputed time.Duration // until then the owner is not asked: it says that it is none
	apart    time.Duration // when the owner was last done without
	used     time.Duration
	busy     bool
}

func newQuotas(c *Cluster) *quotas {
	q := &quotas{c: c, seed: maphash.MakeSeed(), most: maxQuotaKeys, metrics: newQuotaMetrics(c.cfg.Registerer)}
	q.waits.New = func() any { return &quotaWait{signal: make(chan struct{}, 1)} }
	for i := range q.shards {
		q.shards[i].keys = make(map[string]*quotaKey)
	}
	return q
}

func (q *quotas) shard(key string) *quotaShard {
	return &q.shards[maphash.String(q.seed, key)%quotaShards]
}

// enter is the key, made if there is room for it. The caller holds s.mu.
func (q *quotas) enter(s *quotaShard, key string, most int64, now time.Duration) *quotaKey {
	if k := s.keys[key]; k != nil {
		k.used = now
		q.place(k, q.c.view.Load(), now)
		return k
	}
	if q.count.Load() >= most || len(key) > wire.MaxQuotaKey || key == "" {
		return nil
	}
	q.count.Add(1)
	k := &quotaKey{name: key, hash: ring.Key(key), used: now}
	s.keys[key] = k
	q.place(k, q.c.view.Load(), now)
	return k
}

// place finds the key's owner. An owner that this node becomes begins with empty
// books. The caller holds the shard's lock.
func (q *quotas) place(k *quotaKey, v *view, now time.Duration) {
	if k.term == v.term {
		return
	}
	fresh := k.term == 0
	k.term = v.term
	place := v.ring.Index(k.hash)
	owner, own := v.peers[place], place == v.self
	if !fresh && owner == k.owner && own == k.own {
		return
	}
	k.owner, k.own, k.books, k.disputed = owner, own, nil, 0
	if !fresh {
		k.hold.Moved(now)
		k.wake()
	}
	if own {
		k.books = quota.NewOwner(v.since)
		r := k.hold.Report(quota.Amount{})
		k.books.Told(now, quota.Self, &r)
	}
}

// list has what the key has in hand looked at with each beat. The caller holds s.mu.
func (s *quotaShard) list(k *quotaKey) {
	if !k.busy && k.hold.InHand() {
		k.busy = true
		s.busy = append(s.busy, k)
	}
}

// Acquire books one request of about so many tokens for a key, whose limit is
// configured here as l. It waits for the key's owner at most as long as a reservation
// waits for one.
func (c *Cluster) Acquire(ctx context.Context, key string, l quota.Limit, tokens int64) quota.Verdict {
	q, now := c.quotas, c.cfg.Now()
	tokens = min(max(tokens, 1), maxQuotaTokens)
	s := q.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := q.enter(s, key, q.most, now)
	if k == nil {
		q.metrics.degraded.full.Inc()
		return quota.Verdict{OK: true, Degraded: true}
	}
	k.hold.Demand(now, l, tokens)
	v, done := q.decide(s, k, now, tokens)
	if !done {
		v = q.await(ctx, s, k, tokens)
	}
	s.list(k)
	return v
}

// decide decides without waiting, if that is possible. The caller holds s.mu.
func (q *quotas) decide(s *quotaShard, k *quotaKey, now time.Duration, tokens int64) (v quota.Verdict, done bool) {
	if k.hold.Take(now, tokens) {
		if !k.own && k.hold.Low(now) {
			q.ask(s, k, now, 0)
		}
		return quota.Verdict{OK: true}, true
	}
	if v, refused := k.hold.Refused(now, tokens); refused || !k.own {
		return v, refused
	}
	a := k.hold.Ask(now, tokens, quota.Amount{})
	a.Want.Slots = a.Need.Slots
	g := q.grant(s, k, now, quota.Self, &a)
	k.hold.Apply(now, &g)
	if k.hold.Take(now, tokens) {
		return quota.Verdict{OK: true}, true
	}
	return quota.Verdict{Why: g.Why, RetryAfter: g.Retry}, true
}

// Settle corrects the tokens that a request was booked with: by so many more, or
// fewer where it is negative.
func (c *Cluster) Settle(key string, tokens int64) {
	c.quotas.change(key, func(k *quotaKey, now time.Duration) bool {
		tokens = min(max(tokens, -maxQuotaTokens), maxQuotaTokens)
		if tokens < 0 && k.isApart(now) {
			k.alone.Settle(now, k.hold.Limit(), 0, tokens) // the owner did not give them
			return false
		}
		k.hold.Settle(now, tokens)
		return false
	})
}

// Release ends a request: its slot is free.
func (c *Cluster) Release(key string) {
	c.quotas.change(key, func(k *quotaKey, now time.Duration) bool { return k.hold.Release(now) })
}

// Cancel takes back an Acquire whose request did not begin, as where another key of
// it was refused.
func (c *Cluster) Cancel(key string, tokens int64) {
	c.quotas.change(key, func(k *quotaKey, now time.Duration) bool {
		tokens = min(max(tokens, 1), maxQuotaTokens)
		if k.isApart(now) {
			k.alone.Settle(now, k.hold.Limit(), 1, -tokens)
			return k.hold.Release(now)
		}
		k.hold.Cancel(now, tokens)
		return false
	})
}

// change changes what this node has of a key, and tells the owner where that is
// itself, or where what is free is missed.
func (q *quotas) change(key string, do func(k *quotaKey, now time.Duration) (urgent bool)) {
	s, now := q.shard(key), q.c.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[key]
	if k == nil {
		return
	}
	k.used = now
	q.place(k, q.c.view.Load(), now)
	urgent := do(k, now)
	switch {
	case k.own:
		r := k.hold.ReturnSlots()
		k.books.Told(now, quota.Self, &r)
	case urgent:
		q.tellNow(s, k, now)
	}
	s.list(k)
}
