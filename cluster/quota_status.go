package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"kvca/state/quota"
)

// LimitStatus is one key of limits as this node knows it.
type LimitStatus struct {
	Key   string     `json:"key"`
	Owner string     `json:"owner"`
	Limit LimitRates `json:"limit"`
	// Here is what this node uses of it, Cluster what all do, where this node owns it.
	Here    LimitRates  `json:"here"`
	Cluster *LimitRates `json:"cluster,omitempty"`
	// Degraded says that this node did without the owner within the last second.
	Degraded bool `json:"degraded,omitempty"`
}

// LimitRates are a limit, where 0 is none, or how much of one is used.
type LimitRates struct {
	RequestsPerSecond float64 `json:"requests_per_second"`
	TokensPerSecond   float64 `json:"tokens_per_second"`
	Concurrent        int     `json:"concurrent"`
}

func ratesOf(u quota.Use) LimitRates {
	return LimitRates{RequestsPerSecond: u.Requests, TokensPerSecond: u.Tokens, Concurrent: u.Concurrent}
}

// LimitStatus lists the keys of limits that are known here, at most so many: those
// that are used most first.
func (c *Cluster) LimitStatus(most int) []LimitStatus {
	now, v := c.cfg.Now(), c.view.Load()
	var list []LimitStatus
	c.quotas.each(func(_ *quotaShard, k *quotaKey) {
		c.quotas.place(k, v, now)
		list = append(list, k.status(v, now))
	})
	slices.SortFunc(list, func(a, b LimitStatus) int {
		return cmp.Or(cmp.Compare(b.used(), a.used()), strings.Compare(a.Key, b.Key))
	})
	return list[:min(max(most, 0), len(list))]
}

func (s *LimitStatus) used() float64 {
	if s.Cluster != nil {
		return s.Cluster.RequestsPerSecond
	}
	return s.Here.RequestsPerSecond
}

func (k *quotaKey) status(v *view, now time.Duration) LimitStatus {
	l := k.hold.Limit()
	s := LimitStatus{Key: k.name, Owner: v.names[v.ring.Index(k.hash)], Here: ratesOf(k.hold.Used(now)), Degraded: k.isApart(now)}
	if k.books != nil {
		if own := k.books.Limit(); !own.None() {
			l = own
		}
		all := ratesOf(k.books.Used(now))
		s.Cluster = &all
	}
	s.Limit = LimitRates{RequestsPerSecond: l.Requests, TokensPerSecond: l.Tokens, Concurrent: l.Concurrent}
	return s
}

// quotaMetrics are what is counted of limits.
type quotaMetrics struct {
	granted, refused, disputed prometheus.Counter

	degraded quotaDegraded
}

// quotaDegraded counts decisions without the owner.
type quotaDegraded struct {
	full  prometheus.Counter
	byWhy map[string]prometheus.Counter
}

func (d *quotaDegraded) why(why string) prometheus.Counter { return d.byWhy[why] }

func newQuotaMetrics(reg prometheus.Registerer) *quotaMetrics {
	f := promauto.With(reg)
	asks := f.NewCounterVec(prometheus.CounterOpts{
		Name: "kvca_cluster_limit_asks_total", Help: "Answers of other nodes to questions about limits: granted, refused, disputed (that node does not think that it owns the key).",
	}, []string{"answer"})
	degraded := f.NewCounterVec(prometheus.CounterOpts{
		Name: "kvca_cluster_limit_degraded_total", Help: "Requests decided by this node's share of a limit, by why the owner of the key could not be had; full: there was no room for the key, and no limit.",
	}, []string{"reason"})
	m := &quotaMetrics{}
	m.granted, m.refused, m.disputed = asks.WithLabelValues("granted"), asks.WithLabelValues("refused"), asks.WithLabelValues("disputed")
	m.degraded = quotaDegraded{full: degraded.WithLabelValues("full"), byWhy: make(map[string]prometheus.Counter)}
	for _, why := range []string{whyDown, whyHung, whyTimeout, whyBusy, whyDisputed, whyGone} {
		m.degraded.byWhy[why] = degraded.WithLabelValues(why)
	}
	return m
}

// count counts an answer.
func (m *quotaMetrics) count(g *quota.Grant) {
	if g.Given == (quota.Amount{}) && g.Why != quota.Nothing {
		m.refused.Inc()
		return
	}
	m.granted.Inc()
}
