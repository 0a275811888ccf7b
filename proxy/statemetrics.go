package proxy

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/ledger"
)

// stateMetrics reads the block map and the ledger when the metrics are gathered,
// so that nothing is counted twice and the core needs no metrics of its own.
type stateMetrics struct {
	blocks, locations, tentative, bytes, maxBytes *prometheus.Desc
	expired, evicted, expectDropped               *prometheus.Desc
	held, granted, active, own, novel             *prometheus.Desc
	m                                             *blockmap.Map
	l                                             *ledger.Ledger
	fleet                                         func() []*router.Backend
}

// RegisterState registers the metrics of the block map and of the ledger, and
// the program's build.
func (p *Proxy) RegisterState(reg prometheus.Registerer, m *blockmap.Map, l *ledger.Ledger) error {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kvca_build_info", Help: "The program's version, always 1.",
		ConstLabels: prometheus.Labels{"version": p.config().Version, "go_version": runtime.Version()},
	})
	build.Set(1)
	if err := reg.Register(build); err != nil {
		return err
	}
	return reg.Register(&stateMetrics{
		m: m, l: l, fleet: p.pool.All,
		blocks:        desc("kvca_block_map_blocks", "Distinct blocks in the block map."),
		locations:     desc("kvca_block_map_locations", "Locations in the block map."),
		tentative:     desc("kvca_block_map_tentative_locations", "Tentative locations: blocks of routed, unanswered requests."),
		bytes:         desc("kvca_block_map_bytes", "Memory that the block map takes."),
		maxBytes:      desc("kvca_block_map_max_bytes", "Bound on the memory of the block map."),
		expired:       desc("kvca_block_map_expired_total", "Locations that expired or were voided."),
		evicted:       desc("kvca_block_map_evicted_total", "Locations evicted, by what was full: the block map or a backend's mirror.", "reason"),
		expectDropped: desc("kvca_block_map_tentative_dropped_total", "Requests whose blocks were not counted tentatively for lack of room."),
		held:          desc("kvca_reservations_held", "Requests that this node has reserved and that are not over."),
		granted:       desc("kvca_reservations_granted_total", "Reservations booked by this node as the backend's owner, for its own requests and its peers'."),
		active:        desc("kvca_backend_active_requests", "Requests reserved on the backend and not over, by all nodes as far as this one knows.", "backend"),
		own:           desc("kvca_backend_own_requests", "Requests that this node has reserved on the backend and that are not over: to be added over nodes.", "backend"),
		novel:         desc("kvca_backend_novel_bytes", "Novel-block load of the backend: prefill work in bytes of CBR that is reserved and has not begun to be answered.", "backend"),
	})
}

func (s *stateMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		s.blocks, s.locations, s.tentative, s.bytes, s.maxBytes, s.expired, s.evicted, s.expectDropped, s.held, s.granted, s.active, s.own, s.novel,
	} {
		ch <- d
	}
}

func (s *stateMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	stats := s.m.Stats()
	gauge(s.blocks, float64(stats.Blocks))
	gauge(s.locations, float64(stats.Locations))
	gauge(s.tentative, float64(stats.Tentative))
	gauge(s.bytes, float64(stats.Bytes))
	gauge(s.maxBytes, float64(stats.MaxBytes))
	counter(s.expired, stats.Expired)
	counter(s.evicted, stats.Evicted, "bound")
	counter(s.evicted, stats.MirrorEvicted, "mirror")
	counter(s.expectDropped, stats.ExpectDropped)
	gauge(s.held, float64(s.l.Held()))
	counters := s.l.Counters()
	counter(s.granted, counters.Granted+counters.ForPeers)
	for _, b := range s.fleet() {
		load := s.l.Load(b.Slot)
		gauge(s.active, float64(load.Active), b.ID)
		gauge(s.own, float64(s.l.Own(b.Slot).Active), b.ID)
		gauge(s.novel, float64(load.Novel), b.ID)
	}
}
