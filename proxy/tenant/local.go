package tenant

import (
	"context"
	"sync"
	"time"

	"kvca/state/quota"
)

// Local are the limits of a node that has no cluster. It is safe for concurrent use.
type Local struct {
	now func() time.Duration

	mu    sync.Mutex
	keys  map[string]*localKey
	swept time.Duration
}

type localKey struct {
	book  quota.Book
	limit quota.Limit
	inUse int
}

const (
	// maxLocalKeys bounds the keys; one for which there is no room is not limited.
	maxLocalKeys = 1 << 16
	// sweepEvery is the time between two looks for keys that are not in use.
	sweepEvery = 10 * time.Second
)

// NewLocal makes limits by that clock, which counts from any moment.
func NewLocal(now func() time.Duration) *Local {
	return &Local{now: now, keys: make(map[string]*localKey)}
}

// Acquire implements Quotas. It does not wait.
func (q *Local) Acquire(_ context.Context, key string, l quota.Limit, tokens int64) quota.Verdict {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep(now)
	k := q.keys[key]
	if k == nil {
		if len(q.keys) >= maxLocalKeys {
			return quota.Verdict{OK: true, Degraded: true}
		}
		k = &localKey{}
		k.book.Full(now, l)
		q.keys[key] = k
	}
	k.limit = l
	v := k.book.Take(now, l, k.inUse, max(tokens, 1))
	if v.OK {
		k.inUse++
	}
	return v
}

// Settle implements Quotas.
func (q *Local) Settle(key string, tokens int64) {
	q.change(key, func(k *localKey, now time.Duration) { k.book.Settle(now, k.limit, 0, tokens) })
}

// Release implements Quotas.
func (q *Local) Release(key string) {
	q.change(key, func(k *localKey, _ time.Duration) { k.inUse = max(k.inUse-1, 0) })
}

// Cancel implements Quotas.
func (q *Local) Cancel(key string, tokens int64) {
	q.change(key, func(k *localKey, now time.Duration) {
		k.book.Settle(now, k.limit, 1, -max(tokens, 1))
		k.inUse = max(k.inUse-1, 0)
	})
}

func (q *Local) change(key string, do func(k *localKey, now time.Duration)) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.keys[key]; k != nil {
		do(k, now)
	}
}

// sweep forgets, now and then, the keys that are as new ones. The caller holds mu.
func (q *Local) sweep(now time.Duration) {
	if now-q.swept < sweepEvery {
		return
	}
	q.swept = now
	for name, k := range q.keys {
		if k.inUse == 0 && k.book.Idle(now, k.limit) {
			delete(q.keys, name)
		}
	}
}
