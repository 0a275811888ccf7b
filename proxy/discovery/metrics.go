package discovery

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// observed is a source that tells how it fares; those that Parse makes do.
type observed interface {
	health() (failures uint64, success time.Time)
}

// collector reads the keeper when Prometheus asks. Its label comes from the
// configuration.
type collector struct {
	keeper                    *Keeper
	backends, errors, success *prometheus.Desc
}

func newCollector(k *Keeper) *collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("kvca_discovery_"+name, help, []string{"source"}, nil)
	}
	return &collector{
		keeper:   k,
		backends: desc("backends", "Backends that the source names, those that are draining included."),
		errors:   desc("errors_total", "Questions that the source did not answer, and answers that could not be used."),
		success:  desc("last_success_seconds", "When the source last answered, in seconds since 1970; 0 for never."),
	}
}

// Describe names the series.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- c.backends
	out <- c.errors
	out <- c.success
}

// Collect reads every source once.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for i, s := range c.keeper.sources {
		c.keeper.mu.Lock()
		found := len(c.keeper.book.answers[i].list)
		c.keeper.mu.Unlock()
		out <- prometheus.MustNewConstMetric(c.backends, prometheus.GaugeValue, float64(found), s.String())
		o, ok := s.(observed)
		if !ok {
			continue
		}
		failures, at := o.health()
		success := 0.0
		if !at.IsZero() {
			success = float64(at.UnixMilli()) / 1e3
		}
		out <- prometheus.MustNewConstMetric(c.errors, prometheus.CounterValue, float64(failures), s.String())
		out <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, success, s.String())
	}
}
