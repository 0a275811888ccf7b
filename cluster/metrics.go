package cluster

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are what the cluster counts. Those of membership and of links are
// their own.
type metrics struct {
	ownerCall    prometheus.Histogram
	reservations struct {
		own, granted, clear prometheus.Counter
		degraded            *prometheus.CounterVec
	}
	refusals   prometheus.Counter
	answers    *prometheus.CounterVec
	leases     prometheus.Counter
	owned      prometheus.Gauge
	deltaBytes prometheus.Counter
	overflows  prometheus.Counter
	gaps       prometheus.Counter
	dropped    prometheus.Counter
	malformed  *prometheus.CounterVec
	runs       struct{ applied, void, unknown prometheus.Counter }

	comparisons prometheus.Counter
	repaired    prometheus.Counter
	divergence  *prometheus.GaugeVec

	index indexMetrics
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		ownerCall: f.NewHistogram(prometheus.HistogramOpts{
			Name: "kvca_cluster_owner_call_seconds", Help: "Time that a reservation at another node takes, of those that were answered.",
			Buckets: []float64{10e-6, 20e-6, 30e-6, 50e-6, 75e-6, 100e-6, 150e-6, 200e-6, 300e-6, 500e-6, 750e-6, 1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 10e-3, 25e-3},
		}),
		refusals:    counter("kvca_cluster_refusals_total", "Reservations that an owner refused this node: its least cost was above the bound, or it owned none of the backends."),
		answers:     vec("kvca_cluster_answers_total", "Reservations of other nodes that this node decided as owner.", "answer"),
		leases:      counter("kvca_cluster_leases_expired_total", "Nodes whose load was given back since they were silent."),
		owned:       f.NewGauge(prometheus.GaugeOpts{Name: "kvca_cluster_owned_backends", Help: "Backends that this node owns."}),
		deltaBytes:  counter("kvca_cluster_delta_bytes_total", "Bytes of locations told to peers as requests were routed, once for each peer."),
		overflows:   counter("kvca_cluster_delta_overflows_total", "Times that a peer could not be told what was learned: it is dirty until it has compared."),
		gaps:        counter("kvca_cluster_delta_gaps_total", "Gaps found in the deltas of peers."),
		dropped:     counter("kvca_cluster_frames_dropped_total", "Frames of peers that were dropped since too much waited to be applied."),
		malformed:   vec("kvca_cluster_malformed_total", "Frames of peers that could not be read, wholly or in part, or are of unknown kind.", "reason"),
		comparisons: counter("kvca_cluster_comparisons_total", "Comparisons of block maps begun with peers."),
		repaired:    counter("kvca_cluster_repaired_locations_total", "Locations taken over from peers by comparison, a new node's snapshot included."),
		divergence: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kvca_cluster_divergence_locations", Help: "Locations that the peer had and this node lacked, at the last comparison.",
		}, []string{"peer"}),
	}
	kinds := vec("kvca_cluster_reservations_total", "Reservations by how they were decided: own (this node owns the backend), granted (another owner did), clear (one candidate led so far that its owner was told, not asked). Those without an owner are counted as degraded.", "kind")
	m.reservations.own, m.reservations.granted, m.reservations.clear = kinds.WithLabelValues("own"), kinds.WithLabelValues("granted"), kinds.WithLabelValues("clear")
	m.reservations.degraded = vec("kvca_cluster_degraded_total", "Reservations decided without the owner, by why it could not be had.", "reason")
	for _, why := range []string{whyDown, whyHung, whyTimeout, whyBusy, whyDisputed, whyGone} {
		m.reservations.degraded.WithLabelValues(why)
	}
	runs := vec("kvca_cluster_runs_total", "Runs of locations heard from peers: applied, void (of an older generation), unknown (of a backend that this node does not know).", "result")
	m.index = newIndexMetrics(f)
	m.runs.applied, m.runs.void, m.runs.unknown = runs.WithLabelValues("applied"), runs.WithLabelValues("void"), runs.WithLabelValues("unknown")
	return m
}

// registerState adds what is read when metrics are gathered.
func (c *Cluster) registerState(reg prometheus.Registerer) {
	if reg == nil {
		return
	}
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "kvca_cluster_ready", Help: "1 where this node knows what its peers know."}, func() float64 {
		if c.Ready() {
			return 1
		}
		return 0
	})
	if c.index != nil {
		reg.MustRegister(newSourceMetrics(c.index))
	}
	reg.MustRegister(&peerMetrics{
		c:     c,
		lag:   prometheus.NewDesc("kvca_cluster_lag_seconds", "Time from learning a location to the peer's having applied it, the last one.", []string{"peer"}, nil),
		dirty: prometheus.NewDesc("kvca_cluster_peer_dirty", "1 where the peer lacks something that could not be told, until it has compared.", []string{"peer"}, nil),
		held:  prometheus.NewDesc("kvca_cluster_peer_reservations", "Reservations that the peer holds on backends that this node owns.", []string{"peer"}, nil),
	})
}

// peerMetrics reads the state of the peers when metrics are gathered.
type peerMetrics struct {
	c                *Cluster
	lag, dirty, held *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (m *peerMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.lag
	ch <- m.dirty
	ch <- m.held
}

// Collect implements prometheus.Collector.
func (m *peerMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, peer string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, peer)
	}
	for _, p := range m.c.peers.all() {
		dirty := 0.0
		if p.out.dirty.Load() {
			dirty = 1
		}
		gauge(m.lag, float64(p.out.lag.Load())/1e9, p.name)
		gauge(m.dirty, dirty, p.name)
		gauge(m.held, float64(m.c.cfg.Ledger.HeldBy(p.holder)), p.name)
	}
}
