package cluster

import (
	"context"
	"slices"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/quota"
)

const (
	// maxQuotaWaiting bounds who waits for the answer about one key; beyond, a request
	// does without the owner.
	maxQuotaWaiting = 1024
	// disputeFor is how long an owner is not asked that says it is none: one of the
	// two is about to hear of a change of members.
	disputeFor = 50 * time.Millisecond
	// apartFor is how long after a request without the owner what is settled is taken
	// for that of such a request.
	apartFor = time.Second
)

// quotaWait is a request that waits for the answer to a question about its key.
type quotaWait struct {
	signal chan struct{}
	tokens int64
}

// wake has all who wait look again.
func (k *quotaKey) wake() {
	for _, w := range k.waiting {
		nudge(w.signal)
	}
}

func (k *quotaKey) isApart(now time.Duration) bool { return k.apart > 0 && now-k.apart < apartFor }

// await asks the owner until that decides the request, or does without it. The caller
// holds s.mu, which is given up meanwhile.
func (q *quotas) await(ctx context.Context, s *quotaShard, k *quotaKey, tokens int64) quota.Verdict {
	c := q.c
	now := c.cfg.Now()
	end := now + trust*c.cfg.OwnerBudget
	for extended := false; ; extended = true {
		limit, why := q.reach(k, now, &end, extended)
		if why == "" && (len(k.waiting) >= maxQuotaWaiting || !k.hold.Asking() && !q.ask(s, k, now, tokens)) {
			why = whyBusy
		}
		if why != "" {
			return q.doWithout(k, now, tokens, why)
		}
		how := q.sleep(ctx, s, k, tokens, limit)
		now = c.cfg.Now()
		q.place(k, c.view.Load(), now)
		if v, done := q.decide(s, k, now, tokens); done {
			return v
		}
		switch how {
		case cancelled:
			return q.doWithout(k, now, tokens, whyGone)
		case tooLong:
			if k.hold.Asking() && now-k.asked >= limit && k.owner != nil {
				k.hold.GiveUp()
				k.owner.quotaPatience.missed(k.asked, now)
			}
			return q.doWithout(k, now, tokens, whyTimeout)
		}
	}
}

// reach is how long the key's owner may be waited for, or why it can't be had. A far
// owner moves the end, once.
func (q *quotas) reach(k *quotaKey, now time.Duration, end *time.Duration, extended bool) (limit time.Duration, why string) {
	p := k.owner
	if p == nil || p.connected() == nil {
		return 0, whyDown
	}
	far, tooFar := p.far()
	switch {
	case tooFar:
		return 0, whyTimeout
	case now < k.disputed:
		return 0, whyDisputed
	case p.quotaPatience.hung(now):
		return 0, whyHung
	case now >= *end:
		return 0, whyTimeout
	}
	if far > *end-now && !extended {
		*end = now + 2*far
	}
	return min(max(p.quotaPatience.limit(q.c.cfg.OwnerBudget), far), *end-now), ""
}

// sleep waits for a signal, with the lock given up.
func (q *quotas) sleep(ctx context.Context, s *quotaShard, k *quotaKey, tokens int64, limit time.Duration) waited {
	w := q.waits.Get().(*quotaWait)
	w.tokens = tokens
	k.waiting = append(k.waiting, w)
	s.mu.Unlock()
	how := q.c.waiter.wait(ctx, w.signal, limit)
	s.mu.Lock()
	k.waiting = slices.DeleteFunc(k.waiting, func(o *quotaWait) bool { return o == w })
	select {
	case <-w.signal:
	default:
	}
	q.waits.Put(w)
	return how
}

// ask sends a question about a key, for a request of so many tokens and for those
// that wait, or ahead of need where tokens is 0. False: the link takes no more.
func (q *quotas) ask(s *quotaShard, k *quotaKey, now time.Duration, tokens int64) bool {
	behind := quota.Amount{Requests: int64(len(k.waiting)), Slots: len(k.waiting)}
	for _, w := range k.waiting {
		behind.Tokens += w.tokens
	}
	a := k.hold.Ask(now, tokens, behind)
	s.frame = wire.AppendQuotaAsk(s.frame[:0], k.name, &a)
	if k.owner == nil || !k.owner.send(link.Urgent, wire.QuotaAsk, s.frame) {
		k.hold.GiveUp()
		return false
	}
	k.asked = now
	return true
}

// doWithout decides by this node's share of the limit, since the owner can't be had.
func (q *quotas) doWithout(k *quotaKey, now time.Duration, tokens int64, why string) quota.Verdict {
	n := len(q.c.view.Load().names)
	k.apart = now
	v := k.alone.Share(now, k.hold.Limit().Share(n), k.hold.InUse(), tokens)
	if v.OK {
		k.hold.TakeAlone(now, tokens)
	}
	q.metrics.degraded.why(why).Inc()
	return v
}

// hearGrant takes an owner's answer.
func (q *quotas) hearGrant(p *peer, r *wire.Reader) {
	name, a := r.QuotaKey(), r.QuotaGrant()
	if r.Bad() {
		q.c.malformed(p, wire.QuotaGrant)
		return
	}
	s, now := q.shardOf(name), q.c.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[string(name)]
	if k == nil || k.owner != p {
		return
	}
	switch {
	case a.Recall:
		k.hold.Recalled(now)
		q.tellNow(s, k, now)
		return
	case a.Disputed:
		k.disputed = now + disputeFor
		k.hold.GiveUp()
		q.metrics.disputed.Inc()
	default:
		k.hold.Apply(now, &a.Grant)
		q.metrics.count(&a.Grant)
	}
	p.quotaPatience.answered()
	s.list(k)
	k.wake()
}

// abandon ends the wait for a peer whose link is down.
func (q *quotas) abandon(p *peer) {
	q.each(func(_ *quotaShard, k *quotaKey) {
		if k.owner == p && k.hold.Asking() {
			k.hold.GiveUp()
			k.wake()
		}
	})
}
