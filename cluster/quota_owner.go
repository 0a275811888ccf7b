package cluster

import (
	"hash/maphash"
	"sync"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/ledger"
	"kvca/state/quota"
	"kvca/state/ring"
)

// learnFor is how long a new owner gives slots out sparingly at most, while there may
// be holders that have not told what they hold.
const learnFor = time.Second

// told is which members a peer saw when it last told all that it holds, and when.
type told struct {
	mu  sync.Mutex
	sum uint64
	at  time.Duration
}

func (t *told) set(sum uint64, at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum, t.at = sum, at
}

// is whether that was of this set of members, which this node sees since then; the
// peer may have heard of it earlier.
func (t *told) is(sum uint64, since time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum == sum && t.at > since-learnFor
}

func (q *quotas) shardOf(key []byte) *quotaShard {
	return &q.shards[maphash.Bytes(q.seed, key)%quotaShards]
}

// owned is the key if this node owns it, made if need be. The caller holds s.mu.
func (q *quotas) owned(s *quotaShard, name []byte, now time.Duration) *quotaKey {
	k := s.keys[string(name)]
	if k == nil {
		v := q.c.view.Load()
		if v.ring.Index(ring.Key(string(name))) != v.self {
			return nil
		}
		k = q.enter(s, string(name), q.most/4*3, now)
	} else {
		q.place(k, q.c.view.Load(), now)
	}
	if k == nil || !k.own {
		return nil
	}
	k.used = now
	return k
}

// hearAsk answers a question of a peer. It runs on the link's reader.
func (q *quotas) hearAsk(p *peer, l peerLink, r *wire.Reader) {
	name, a := r.QuotaKey(), r.QuotaAsk()
	if r.Bad() {
		q.c.malformed(p, wire.QuotaAsk)
		return
	}
	s, now := q.shardOf(name), q.c.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := wire.QuotaAnswer{Disputed: true}
	if k := q.owned(s, name, now); k != nil {
		answer = wire.QuotaAnswer{Grant: q.grant(s, k, now, p.holder, &a)}
	}
	answer.Seq = a.Seq
	s.frame = wire.AppendQuotaGrant(s.frame[:0], string(name), &answer)
	l.Send(link.Urgent, wire.QuotaGrant, s.frame)
}

// grant answers a holder of a key that this node owns, and tells others to give back
// what they do not use if that is missed now. The caller holds s.mu.
func (q *quotas) grant(s *quotaShard, k *quotaKey, now time.Duration, holder ledger.Holder, a *quota.Ask) quota.Grant {
	v := q.c.view.Load()
	if k.books.Learning() && q.allTold(v, now) {
		k.books.Learned()
	}
	g := k.books.Grant(now, uint8(holder), a)
	if g.Scarce {
		q.recall(s, k, v)
	}
	return g
}

func (q *quotas) recall(s *quotaShard, k *quotaKey, v *view) {
	var scratch [ledger.MaxHolders]uint8
	for _, h := range k.books.Recall(scratch[:0]) {
		for _, p := range v.peers {
			if p != nil && uint8(p.holder) == h {
				s.frame = wire.AppendQuotaGrant(s.frame[:0], k.name, &wire.QuotaAnswer{Recall: true})
				p.send(link.Urgent, wire.QuotaGrant, s.frame)
			}
		}
	}
}

// allTold is whether every live node has told what it holds of this node's keys, or
// has had its time.
func (q *quotas) allTold(v *view, now time.Duration) bool {
	if now-v.since >= learnFor {
		return true
	}
	for i, p := range v.peers {
		if i != v.self && (p == nil || !p.quotaTold.is(v.sum, v.since)) {
			return false
		}
	}
	return true
}

// hearHeld takes reports of a peer.
func (q *quotas) hearHeld(p *peer, r *wire.Reader) {
	sum, last := r.QuotaHeld()
	now := q.c.cfg.Now()
	for r.Rest() > 0 {
		name, t := r.QuotaKey(), r.QuotaReport()
		if !r.Bad() {
			q.told(p, name, &t, now)
		}
	}
	switch {
	case r.Bad():
		q.c.malformed(p, wire.QuotaHeld)
	case last:
		p.quotaTold.set(sum, now)
	}
}

func (q *quotas) told(p *peer, name []byte, t *quota.Report, now time.Duration) {
	s := q.shardOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := q.owned(s, name, now); k != nil {
		k.books.Told(now, uint8(p.holder), t)
	}
}

// drop forgets what a peer holds: its lease is over.
func (q *quotas) drop(p *peer) {
	p.quotaTold.set(0, 0)
	q.each(func(_ *quotaShard, k *quotaKey) {
		if k.books != nil {
			k.books.Drop(uint8(p.holder))
		}
	})
}

// each calls do for all keys, under their locks.
func (q *quotas) each(do func(s *quotaShard, k *quotaKey)) {
	if q.count.Load() == 0 {
		return
	}
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		for _, k := range s.keys {
			do(s, k)
		}
		s.mu.Unlock()
	}
}
