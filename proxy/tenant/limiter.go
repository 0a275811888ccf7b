package tenant

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/state/quota"
)

// Quotas are the limits of all nodes together: the cluster's, or a lone node's own.
type Quotas interface {
	// Acquire books one request of about so many tokens for a key.
	Acquire(ctx context.Context, key string, l quota.Limit, tokens int64) quota.Verdict
	// Settle corrects the tokens of one that was booked: by so many more, or fewer
	// where it is negative.
	Settle(key string, tokens int64)
	// Release says that a request has ended.
	Release(key string)
	// Cancel takes an Acquire back whose request did not begin.
	Cancel(key string, tokens int64)
}

// Limiter holds tenants to their limits: each tenant's own, and beside it those of
// single models.
type Limiter struct {
	quotas  Quotas
	metrics *limiterMetrics

	mu   sync.RWMutex
	keys map[modelKey]string
}

// modelKey is a tenant and a model that has limits of its own.
type modelKey struct{ tenant, model string }

// maxModelKeys bounds the keys of models that are kept made; they come from the keys
// file, so that only many reloads of other ones get there. Then all are made anew.
const maxModelKeys = 1 << 16

// Refusal says that a request is too much for its tenant.
type Refusal struct {
	// RetryAfter is when another try may be worth it: whole seconds, one at least.
	RetryAfter time.Duration
	// Why is requests, tokens or concurrency.
	Why string
}

// NewLimiter makes a limiter that books with q.
func NewLimiter(q Quotas, reg prometheus.Registerer) *Limiter {
	return &Limiter{quotas: q, metrics: newLimiterMetrics(reg), keys: make(map[modelKey]string)}
}

// Admit books one request of about so many tokens, with all the limits that it is
// under or with none. The permit of a request that is refused, or that has no limits,
// does nothing.
func (l *Limiter) Admit(ctx context.Context, t *Tenant, model string, tokens int64) (Permit, *Refusal) {
	whole := t.Limits.limit()
	var part quota.Limit
	if len(t.PerModel) > 0 {
		limits := t.PerModel[model]
		part = limits.limit()
	}
	if whole.None() && part.None() {
		return Permit{}, nil
	}
	p := &permit{l: l, tokens: max(tokens, 1), m: l.metrics.of(t.Name)}
	if !whole.None() {
		p.keys[0] = t.Name
	}
	if !part.None() {
		p.keys[1] = l.key(t.Name, model)
	}
	v := p.acquire(ctx, whole, part)
	l.metrics.decided(p.m, v)
	if !v.OK {
		return Permit{}, &Refusal{RetryAfter: wholeSeconds(v.RetryAfter), Why: v.Why.String()}
	}
	p.m.inFlight.Inc()
	return Permit{p}, nil
}

// key is the key of a tenant's model. Names of tenants have no line breaks, so that no
// two pairs make the same one.
func (l *Limiter) key(tenant, model string) string {
	m := modelKey{tenant, model}
	l.mu.RLock()
	key, ok := l.keys[m]
	l.mu.RUnlock()
	if ok {
		return key
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.keys) >= maxModelKeys {
		clear(l.keys)
	}
	key = tenant + "\n" + model
	l.keys[m] = key
	return key
}

// limit is what quotas call it.
func (l *Limits) limit() quota.Limit {
	return quota.Limit{Requests: l.RequestsPerSecond, Tokens: l.TokensPerSecond, Concurrent: l.Concurrent, Burst: l.Burst}
}

// wholeSeconds rounds up: that is what a Retry-After header can say.
func wholeSeconds(d time.Duration) time.Duration {
	return max((d+time.Second-1)/time.Second, 1) * time.Second
}

// Permit is a request's leave to be under way. Its copies are one permit; the zero
// value is that of a request without limits.
type Permit struct{ *permit }

type permit struct {
	l    *Limiter
	m    *tenantMetrics
	keys [2]string // "": no limits of that kind

	mu     sync.Mutex
	tokens int64 // that are booked
	closed atomic.Bool
}

// acquire books with both keys or with none.
func (p *permit) acquire(ctx context.Context, limits ...quota.Limit) (v quota.Verdict) {
	v.OK = true
	degraded := false
	for i, key := range p.keys {
		if key == "" {
			continue
		}
		if v = p.l.quotas.Acquire(ctx, key, limits[i], p.tokens); !v.OK {
			if i == 1 && p.keys[0] != "" {
				p.l.quotas.Cancel(p.keys[0], p.tokens)
			}
			return v
		}
		degraded = degraded || v.Degraded
	}
	v.Degraded = degraded
	return v
}

// Settle says how many tokens the request has used; it may be said again as that
// grows. A request that was never settled has used what was estimated.
func (p Permit) Settle(actual int64) {
	if p.permit == nil {
		return
	}
	actual = max(actual, 0)
	p.mu.Lock()
	more := actual - p.tokens
	p.tokens = actual
	p.mu.Unlock()
	for _, key := range p.keys {
		if key != "" && more != 0 {
			p.l.quotas.Settle(key, more)
		}
	}
}

// Close says that the request has ended, however often it is called.
func (p Permit) Close() {
	if p.permit == nil || p.closed.Swap(true) {
		return
	}
	for _, key := range p.keys {
		if key != "" {
			p.l.quotas.Release(key)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m.inFlight.Dec()
	p.m.tokens.Add(float64(p.tokens))
}
