package proxy

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"kvca/proxy/engine/prompt"
)

// knowledgeMetrics are what the precise index was asked and whether it was right.
// Labels are backends, and closed sets.
type knowledgeMetrics struct {
	tokens, lookup      prometheus.Histogram
	sources             *prometheus.CounterVec
	predicted, reported *prometheus.CounterVec
	wrong               *prometheus.CounterVec
	fallbacks           *prometheus.CounterVec
	lengths, distrusted prometheus.Counter
}

func newKnowledgeMetrics(reg prometheus.Registerer) *knowledgeMetrics {
	f := promauto.With(reg)
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	seconds := func(name, help string, first float64) prometheus.Histogram {
		return f.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, 2, 14)})
	}
	m := &knowledgeMetrics{
		tokens:     seconds("kvca_index_tokens_seconds", "Time that a request waited for its tokens.", 5e-5),
		lookup:     seconds("kvca_index_lookup_seconds", "Time to look a prompt up in the precise index, hashing included.", 2e-6),
		sources:    vec("kvca_index_tokens_total", "Requests whose tokens were found, by how.", "source"),
		predicted:  vec("kvca_index_predicted_tokens_total", "Cached tokens that the precise index predicted, of answers that report them.", "backend"),
		reported:   vec("kvca_index_reported_tokens_total", "Cached tokens that engines reported of the same answers.", "backend"),
		wrong:      vec("kvca_index_wrong_total", "Predictions that were off by a block or more: the engine reported less, and was corrected, or more.", "backend", "reported"),
		lengths:    f.NewCounter(prometheus.CounterOpts{Name: "kvca_index_length_mismatch_total", Help: "Prompts that the engine counted other tokens of than were looked up."}),
		distrusted: f.NewCounter(prometheus.CounterOpts{Name: "kvca_index_distrusted_total", Help: "Times that a model was left to the block map since predictions did not come true."}),
	}
	m.fallbacks = vec("kvca_index_fallback_total", "Requests for models with a precise index that were decided by the block map or by load, by why.", "reason")
	for _, reason := range append([]string{noSource, privateKey, distrusted}, prompt.Reasons[:]...) {
		m.fallbacks.WithLabelValues(reason)
	}
	for _, source := range prompt.Sources {
		m.sources.WithLabelValues(source)
	}
	return m
}
