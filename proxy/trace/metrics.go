package trace

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	sent                 prometheus.Counter
	full, failed, closed prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	dropped := f.NewCounterVec(prometheus.CounterOpts{
		Name: "kvca_trace_spans_dropped_total", Help: "Spans that were lost: full (the collector is slower than requests), export (it did not take them), closed (after the end).",
	}, []string{"reason"})
	return &metrics{
		sent:   f.NewCounter(prometheus.CounterOpts{Name: "kvca_trace_spans_sent_total", Help: "Spans that the collector took, a request's and one for each of its attempts."}),
		full:   dropped.WithLabelValues("full"),
		failed: dropped.WithLabelValues("export"),
		closed: dropped.WithLabelValues("closed"),
	}
}
