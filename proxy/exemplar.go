package proxy

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// observe adds an observation and, where its request is traced, the trace as the
// exemplar of its bucket: the way from a slow bucket to one request that was slow.
func observe(h prometheus.Observer, v float64, trace string) {
	if trace != "" {
		if e, ok := h.(prometheus.ExemplarObserver); ok {
			e.ObserveWithExemplar(v, prometheus.Labels{"trace_id": trace})
			return
		}
	}
	h.Observe(v)
}

// metricsHandler serves the metrics. Exemplars are only in the OpenMetrics format,
// which a scraper has to ask for, as Prometheus does.
func metricsHandler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{Timeout: 10 * time.Second, EnableOpenMetrics: true})
}
