package listen

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are those of all listeners of a process. A nil *Metrics counts nothing.
type Metrics struct {
	expiry      *prometheus.GaugeVec
	reloads     *prometheus.CounterVec
	connections *prometheus.GaugeVec
}

// NewMetrics registers the metrics; reg may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	m := &Metrics{
		expiry: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kvca_tls_certificate_expiry_seconds", Help: "When the listener's certificate, or the first of its chain, expires, in seconds since 1970.",
		}, []string{"listener"}),
		reloads: f.NewCounterVec(prometheus.CounterOpts{
			Name: "kvca_tls_reload_total", Help: "Times that changed certificate files were read, by result: ok or failed.",
		}, []string{"result"}),
		connections: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kvca_client_connections", Help: "Open connections of the listener.",
		}, []string{"listener"}),
	}
	m.reloads.WithLabelValues("ok")
	m.reloads.WithLabelValues("failed")
	return m
}

func (m *Metrics) expires(listener string, unixSeconds int64) {
	if m != nil {
		m.expiry.WithLabelValues(listener).Set(float64(unixSeconds))
	}
}

func (m *Metrics) reloaded(err error) {
	if m == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// open is the gauge of a listener's connections.
func (m *Metrics) open(listener string) prometheus.Gauge {
	if m == nil {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "unused"})
	}
	return m.connections.WithLabelValues(listener)
}
