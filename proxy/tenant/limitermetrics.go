package tenant

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"kvca/state/quota"
)

// limiterMetrics are what is counted of requests under limits. Names of tenants come
// from the keys file, never from a client.
type limiterMetrics struct {
	decisions [2][4]prometheus.Counter // degraded, why

	admitted, refused, tokens *prometheus.CounterVec
	inFlight                  *prometheus.GaugeVec

	mu      sync.RWMutex
	tenants map[string]*tenantMetrics
}

// tenantMetrics are one tenant's.
type tenantMetrics struct {
	admitted, tokens prometheus.Counter
	refused          [4]prometheus.Counter // why
	inFlight         prometheus.Gauge
}

const (
	// maxSeries bounds the tenants that have series of their own; others share one.
	maxSeries    = 4096
	otherTenants = "(others)"
)

// results are how a decision is called where the owner of the key was asked, or had
// given something to go by, and where not.
var results = [2][4]string{
	{"granted", "refused_requests", "refused_tokens", "refused_concurrency"},
	{"degraded_granted", "degraded_refused_requests", "degraded_refused_tokens", "degraded_refused_concurrency"},
}

var refusals = []quota.Why{quota.Requests, quota.Tokens, quota.Concurrency}

func newLimiterMetrics(reg prometheus.Registerer) *limiterMetrics {
	f := promauto.With(reg)
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &limiterMetrics{
		admitted: vec("kvca_tenant_admitted_total", "Requests of the tenant that were within its limits; those of tenants without limits are not counted.", "tenant"),
		refused:  vec("kvca_tenant_refused_total", "Requests of the tenant that were refused, by what was short: requests, tokens or concurrency.", "tenant", "why"),
		tokens:   vec("kvca_tenant_tokens_total", "Tokens of the tenant's requests that have ended: those used, or estimated where the engine reported none.", "tenant"),
		inFlight: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kvca_tenant_in_flight", Help: "Requests of the tenant that are under way through this node.",
		}, []string{"tenant"}),
		tenants: make(map[string]*tenantMetrics),
	}
	decisions := vec("kvca_limit_decisions_total", "Requests of tenants with limits by result: granted, or refused_ and what was short; with degraded_ before it where the owner of a key could not be had, and this node went by its share.", "result")
	for degraded, row := range results {
		for why, result := range row {
			m.decisions[degraded][why] = decisions.WithLabelValues(result)
		}
	}
	return m
}

// of gives a tenant's series.
func (m *limiterMetrics) of(tenant string) *tenantMetrics {
	m.mu.RLock()
	t := m.tenants[tenant]
	m.mu.RUnlock()
	if t != nil {
		return t
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.tenants) >= maxSeries {
		tenant = otherTenants
	}
	if t = m.tenants[tenant]; t == nil {
		t = &tenantMetrics{
			admitted: m.admitted.WithLabelValues(tenant), tokens: m.tokens.WithLabelValues(tenant),
			inFlight: m.inFlight.WithLabelValues(tenant),
		}
		for _, why := range refusals {
			t.refused[why] = m.refused.WithLabelValues(tenant, why.String())
		}
		m.tenants[tenant] = t
	}
	return t
}

// decided counts a decision.
func (m *limiterMetrics) decided(t *tenantMetrics, v quota.Verdict) {
	degraded := 0
	if v.Degraded {
		degraded = 1
	}
	m.decisions[degraded][v.Why].Inc()
	if v.OK {
		t.admitted.Inc()
		return
	}
	t.refused[v.Why].Inc()
}
