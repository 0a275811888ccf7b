package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"kvca/proxy/backend"
)

// clusterMetrics says of each backend what the cluster knows of it. The cluster's
// parts have metrics of their own.
type clusterMetrics struct {
	node                       string
	pool                       *backend.Pool
	cluster                    Cluster
	owned, generation, differs *prometheus.Desc
}

// RegisterCluster registers what c knows of the backends.
func (p *Proxy) RegisterCluster(reg prometheus.Registerer, c Cluster) error {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"backend"}, nil)
	}
	return reg.Register(&clusterMetrics{
		node: p.config().Node, pool: p.pool, cluster: c,
		owned:      desc("kvca_backend_owned", "1 where this node owns the backend: over all nodes the sum is 1."),
		generation: desc("kvca_backend_generation", "The backend's generation in the cluster: how often any node found its cache to be lost."),
		differs:    desc("kvca_backend_health_differs", "Peers that see another health of the backend than this node does."),
	})
}

// Describe implements prometheus.Collector.
func (m *clusterMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.owned, m.generation, m.differs} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *clusterMetrics) Collect(ch chan<- prometheus.Metric) {
	s := m.cluster.Status()
	for _, facts := range m.pool.All() {
		b := m.pool.Of(facts)
		if b == nil {
			continue // removed meanwhile
		}
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, facts.ID)
		}
		owned, differs, health := 0.0, 0.0, b.Health()
		if s.Owner(facts.ID) == m.node {
			owned = 1
		}
		for _, seen := range s.Health[facts.ID] {
			if seen != health {
				differs++
			}
		}
		gauge(m.owned, owned)
		gauge(m.differs, differs)
		gauge(m.generation, float64(s.Generation(facts.ID)))
	}
}
