package backend

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/router"
)

// collector reads Status when Prometheus asks, so that a removed backend's series
// end with it and nothing is kept twice.
type collector struct {
	pool *Pool

	up, standing, generation           *prometheus.Desc
	running, waiting, usage, cache     *prometheus.Desc
	opens, probeFailures, scrapeFailed *prometheus.Desc
	staleRetries                       *prometheus.Desc
}

func newCollector(p *Pool) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("kvca_backend_"+name, help, append([]string{"backend"}, labels...), nil)
	}
	return &collector{
		pool:          p,
		up:            desc("up", "Whether decisions may choose the backend."),
		standing:      desc("standing", "1 for the backend's standing, 0 for the others.", "standing"),
		generation:    desc("restarts_total", "Restarts of the engine that were noticed, each voiding its locations."),
		running:       desc("engine_running_requests", "Requests the engine says it runs."),
		waiting:       desc("engine_waiting_requests", "Requests the engine says are queued."),
		usage:         desc("engine_kv_usage_ratio", "Share of the KV cache the engine says is in use."),
		cache:         desc("engine_cache_tokens", "Size of the engine's KV cache in tokens, 0 if unknown."),
		opens:         desc("breaker_opens_total", "Times the backend's breaker opened.", "reason"),
		probeFailures: desc("probe_failures_total", "Health checks that failed."),
		scrapeFailed:  desc("scrape_failures_total", "Readings of the engine's metrics that failed."),
		staleRetries:  desc("stale_connection_retries_total", "Requests sent again because the engine had closed an idle connection."),
	}
}

func (p *Pool) register() error {
	if p.config.Registerer == nil {
		return nil
	}
	p.metrics = newCollector(p)
	if err := p.config.Registerer.Register(p.metrics); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

func (p *Pool) unregister() {
	if p.metrics != nil {
		p.config.Registerer.Unregister(p.metrics)
	}
}

// Describe names the series.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.up, c.standing, c.generation, c.running, c.waiting, c.usage, c.cache,
		c.opens, c.probeFailures, c.scrapeFailed, c.staleRetries,
	} {
		out <- d
	}
}

// Collect reads every backend once.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.pool.Status() {
		c.backend(out, s)
	}
}

func (c *collector) backend(out chan<- prometheus.Metric, s Status) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{s.ID}, labels...)...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{s.ID}, labels...)...)
	}
	gauge(c.up, indicator(s.Standing == router.Available.String()))
	for standing := router.Available; standing <= router.Draining; standing++ {
		gauge(c.standing, indicator(s.Standing == standing.String()), standing.String())
	}
	gauge(c.cache, float64(s.CacheTokens))
	if s.scrape {
		gauge(c.running, s.Running)
		gauge(c.waiting, s.Waiting)
		gauge(c.usage, s.KVUsage)
	}
	counter(c.generation, s.Generation)
	for f := ConnectFailure; f <= StreamFailure; f++ {
		counter(c.opens, s.counts.opens[f], f.String())
	}
	counter(c.probeFailures, s.counts.probeFailures)
	counter(c.scrapeFailed, s.counts.scrapeFailures)
	counter(c.staleRetries, s.counts.staleRetries)
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
