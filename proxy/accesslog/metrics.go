package accesslog

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	lines                prometheus.Counter
	full, failed, closed prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	dropped := f.NewCounterVec(prometheus.CounterOpts{
		Name: "kvca_access_log_dropped_total", Help: "Lines of the access log that were lost: full (the file is slower than requests), write (it can't be written), closed (after its end).",
	}, []string{"reason"})
	return &metrics{
		lines:  f.NewCounter(prometheus.CounterOpts{Name: "kvca_access_log_lines_total", Help: "Lines of the access log that were written."}),
		full:   dropped.WithLabelValues("full"),
		failed: dropped.WithLabelValues("write"),
		closed: dropped.WithLabelValues("closed"),
	}
}
