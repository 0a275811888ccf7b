package proxy

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// indexMetrics reads the precise index and its sources when the metrics are gathered.
type indexMetrics struct {
	k       *Knowledge
	sources func() []IndexSource

	entries, blocks, bytes, maxBytes, dropped *prometheus.Desc
	live, batches, events, gaps, replays      *prometheus.Desc
	resets, damaged, lost                     *prometheus.Desc
}

// RegisterIndex registers the metrics of the precise index and of those who tell it
// what they hold. Nothing is registered where there is none.
func (p *Proxy) RegisterIndex(reg prometheus.Registerer, sources func() []IndexSource) error {
	if p.config().Knowledge == nil {
		return nil
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("kvca_"+name, help, labels, nil)
	}
	source := func(name, help string, labels ...string) *prometheus.Desc {
		return desc("events_"+name, help, append([]string{"backend", "rank"}, labels...)...)
	}
	return reg.Register(&indexMetrics{
		k: p.config().Knowledge, sources: sources,
		entries:  desc("index_entries", "Entries of the precise index: blocks, once for each source that holds them."),
		blocks:   desc("index_blocks", "Distinct blocks in the precise index."),
		bytes:    desc("index_bytes", "Memory that the precise index takes."),
		maxBytes: desc("index_max_bytes", "Bound on the memory of the precise index."),
		dropped:  desc("index_dropped_total", "Blocks that the precise index had no room for."),
		live:     source("live", "1 where this node knows what the engine holds, 0 where it does not."),
		batches:  source("batches_total", "Batches of KV cache events that were applied."),
		events:   source("total", "KV cache events in them."),
		gaps:     source("gaps_total", "Times that batches were missing."),
		replays:  source("replays_total", "Times that the engine was asked for them again."),
		resets:   source("resets_total", "Times that what was known of the engine was forgotten.", "reason"),
		damaged:  source("damaged_total", "Batches that could not be read."),
		lost:     source("dropped_total", "Batches that this node had no room for; they are asked for again."),
	})
}

// Describe names the series.
func (m *indexMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		m.entries, m.blocks, m.bytes, m.maxBytes, m.dropped, m.live, m.batches, m.events, m.gaps, m.replays, m.resets, m.damaged, m.lost,
	} {
		ch <- d
	}
}

// Collect reads them all.
func (m *indexMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	held := m.k.cfg.Index.Stats()
	gauge(m.entries, float64(held.Entries))
	gauge(m.blocks, float64(held.Blocks))
	gauge(m.bytes, float64(held.Bytes))
	gauge(m.maxBytes, float64(held.MaxBytes))
	counter(m.dropped, held.Dropped)
	for _, s := range m.sources() {
		if s.By != byEvents {
			continue // counted by the cluster
		}
		rank := strconv.Itoa(s.Rank)
		live := 0.0
		if s.State == "live" {
			live = 1
		}
		gauge(m.live, live, s.Backend, rank)
		counter(m.batches, s.Batches, s.Backend, rank)
		counter(m.events, s.Events, s.Backend, rank)
		counter(m.gaps, s.Gaps, s.Backend, rank)
		counter(m.replays, s.Replays, s.Backend, rank)
		counter(m.damaged, s.Damaged, s.Backend, rank)
		counter(m.lost, s.Dropped, s.Backend, rank)
		for reason, n := range s.Resets {
			counter(m.resets, n, s.Backend, rank, reason)
		}
	}
}
