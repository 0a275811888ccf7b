package member

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are what membership counts. Label sets are closed and made in advance, so
// that a series is there before its first event.
type metrics struct {
	joins     *prometheus.CounterVec // result
	refused   *prometheus.CounterVec // reason
	sent      prometheus.Counter
	received  prometheus.Counter
	dropped   *prometheus.CounterVec // reason
	malformed *prometheus.CounterVec // transport
	busy      prometheus.Counter
	conflicts prometheus.Counter
	queueFull prometheus.Counter
	tcpOnly   prometheus.Counter
	rotations prometheus.Counter
}

// Why a fact is dropped.
const (
	dropMalformed = "malformed"  // it can't be read
	dropInbox     = "inbox_full" // facts came faster than they were merged
	dropTable     = "table_full" // maxFacts are held
	dropQueue     = "queue_full" // too many wait to be told
)

func newMetrics(reg prometheus.Registerer, m *Members) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "kvca_cluster_" + name, Help: help})
	}
	vec := func(name, help, label string, values ...string) *prometheus.CounterVec {
		v := f.NewCounterVec(prometheus.CounterOpts{Name: "kvca_cluster_" + name, Help: help}, []string{label})
		for _, value := range values {
			v.WithLabelValues(value)
		}
		return v
	}
	why := make([]string, len(reasons))
	for i, r := range reasons {
		why[i] = string(r)
	}
	for s, name := range states {
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kvca_cluster_members", Help: "Members known, this node included, by state.",
			ConstLabels: prometheus.Labels{"state": name},
		}, func() float64 { return float64(m.count(State(s))) })
	}
	return &metrics{
		joins:     vec("joins_total", "Exchanges of membership that this node began, to join or to compare, by result.", "result", "ok", "failed"),
		refused:   vec("refused_total", "Nodes, packets and streams kept out, by reason.", "reason", why...),
		sent:      counter("facts_sent_total", "Facts queued for gossip: told here or passed on."),
		received:  counter("facts_received_total", "Facts that came by gossip, known ones included."),
		dropped:   vec("facts_dropped_total", "Facts dropped, by reason.", "reason", dropMalformed, dropInbox, dropTable, dropQueue),
		malformed: vec("gossip_malformed_total", "What came to the gossip port and made no sense.", "transport", "packet", "stream"),
		busy:      counter("gossip_streams_refused_total", "Streams to the gossip port closed at once because too many were open."),
		conflicts: counter("name_conflicts_total", "Pairs of live nodes found to have one name."),
		queueFull: counter("gossip_messages_dropped_total", "Gossip messages dropped because memberlist's queue was full."),
		tcpOnly:   counter("udp_blocked_total", "Probes that failed by UDP and succeeded by TCP: the network loses UDP."),
		rotations: counter("gossip_key_rotations_total", "Times the gossip keys were changed while running."),
	}
}
