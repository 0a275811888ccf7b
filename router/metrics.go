package router

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are what the router counts about its decisions.
type metrics struct {
	decisions *prometheus.CounterVec
	degraded  prometheus.Counter
	matched   prometheus.Counter
	novel     prometheus.Counter
	chain     prometheus.Counter
	seconds   prometheus.Histogram
	predicted prometheus.Counter
	reported  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		decisions: f.NewCounterVec(prometheus.CounterOpts{
			Name: "kvca_decisions_total", Help: "Routing decisions, by policy and by the branch that decided.",
		}, []string{"policy", "reason"}),
		degraded: counter("kvca_decisions_degraded_total", "Decisions made without the owner of the backends."),
		matched:  counter("kvca_matched_blocks_total", "Blocks that the chosen backend was believed to hold."),
		novel:    counter("kvca_novel_blocks_total", "Blocks that the chosen backend was believed to lack."),
		chain:    counter("kvca_chain_blocks_total", "Blocks of all routed requests."),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "kvca_decision_seconds", Help: "Time to walk the chain, choose a backend and reserve it.",
			Buckets: prometheus.ExponentialBuckets(2e-6, 2, 14),
		}),
		predicted: counter("kvca_predicted_cached_tokens_total", "Prompt tokens predicted to be cached, of answers that report cached tokens."),
		reported:  counter("kvca_reported_cached_tokens_total", "Prompt tokens that engines reported as served from their cache."),
	}
}

func (m *metrics) decided(d *Decision, took time.Duration) {
	m.decisions.WithLabelValues(d.Policy, string(d.Reason)).Inc()
	if d.Degraded {
		m.degraded.Inc()
	}
	m.matched.Add(float64(d.MatchedBlocks))
	m.novel.Add(float64(d.NovelBlocks))
	m.chain.Add(float64(d.ChainBlocks))
	m.seconds.Observe(took.Seconds())
}

func (m *metrics) tokens(cached, predicted int64) {
	if cached >= 0 {
		m.predicted.Add(float64(predicted))
		m.reported.Add(float64(cached))
	}
}
