package link

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are what is counted about links. The label peer is a node's name, and
// its series are dropped when the node is neither linked nor to be.
type metrics struct {
	sentFrames, sentBytes         *prometheus.CounterVec
	receivedFrames, receivedBytes *prometheus.CounterVec
	dropped                       *prometheus.CounterVec
	queue, up                     *prometheus.GaugeVec
	rtt                           *prometheus.HistogramVec

	connects, closes  *prometheus.CounterVec
	refused, failures *prometheus.CounterVec
	dialFailures      prometheus.Counter

	peers  map[string]*peerMetrics // guarded by Links.mu
	nobody *peerMetrics            // of a link that never was; not registered
}

// peerMetrics are one peer's, looked up once.
type peerMetrics struct {
	sentFrames, sentBytes         [lanes]prometheus.Counter
	receivedFrames, receivedBytes prometheus.Counter
	dropped                       [lanes]prometheus.Counter
	queue                         [lanes]prometheus.Gauge
	up                            prometheus.Gauge
	rtt                           prometheus.Observer
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := makeMetrics(reg)
	m.peers = map[string]*peerMetrics{}
	m.nobody = makeMetrics(nil).lookUp("")
	return m
}

func makeMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: "kvca_link_" + name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Name: "kvca_link_" + name, Help: help}, labels)
	}
	return &metrics{
		sentFrames:     counter("sent_frames_total", "Frames written to a peer by lane.", "peer", "lane"),
		sentBytes:      counter("sent_bytes_total", "Bytes of frames written to a peer by lane, before TLS.", "peer", "lane"),
		receivedFrames: counter("received_frames_total", "Frames read from a peer.", "peer"),
		receivedBytes:  counter("received_bytes_total", "Bytes of frames read from a peer, after TLS.", "peer"),
		dropped:        counter("dropped_frames_total", "Frames that were not queued, since the lane's bound was reached or the link was down.", "peer", "lane"),
		queue:          gauge("queue_bytes", "Bytes that wait to be written, as seen at the last heartbeat.", "peer", "lane"),
		up:             gauge("up", "Whether the link with a peer is up.", "peer"),
		rtt: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kvca_link_rtt_seconds", Help: "Time from a ping to its pong, queues included.",
			Buckets: prometheus.ExponentialBuckets(20e-6, 2.5, 12),
		}, []string{"peer"}),
		connects: counter("connects_total", "Links that came up, by who dialled.", "direction"),
		closes:   counter("closes_total", "Links that went down, by reason.", "reason"),
		refused:  counter("refused_total", "Handshakes that one side refused, by reason and side.", "reason", "by"),
		failures: counter("handshake_failures_total", "Connections that ended before the handshake was over, by reason.", "reason"),
		dialFailures: f.NewCounter(prometheus.CounterOpts{
			Name: "kvca_link_dial_failures_total", Help: "Dials of peers that came to no connection.",
		}),
	}
}

func (m *metrics) lookUp(peer string) *peerMetrics {
	pm := &peerMetrics{
		receivedFrames: m.receivedFrames.WithLabelValues(peer),
		receivedBytes:  m.receivedBytes.WithLabelValues(peer),
		up:             m.up.WithLabelValues(peer),
		rtt:            m.rtt.WithLabelValues(peer),
	}
	for i, lane := range laneNames {
		pm.sentFrames[i] = m.sentFrames.WithLabelValues(peer, lane)
		pm.sentBytes[i] = m.sentBytes.WithLabelValues(peer, lane)
		pm.dropped[i] = m.dropped.WithLabelValues(peer, lane)
		pm.queue[i] = m.queue.WithLabelValues(peer, lane)
	}
	return pm
}

// peer returns a peer's metrics. The caller holds Links.mu, as for forget.
func (m *metrics) peer(name string) *peerMetrics {
	pm := m.peers[name]
	if pm == nil {
		pm = m.lookUp(name)
		m.peers[name] = pm
	}
	return pm
}

func (m *metrics) forget(name string) {
	if m.peers[name] == nil {
		return
	}
	delete(m.peers, name)
	l := prometheus.Labels{"peer": name}
	for _, v := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.sentFrames, m.sentBytes, m.receivedFrames, m.receivedBytes, m.dropped, m.queue, m.up, m.rtt} {
		v.DeletePartialMatch(l)
	}
}

func (m *metrics) connected(p *Peer) {
	direction := "accepted"
	if p.dialled {
		direction = "dialled"
	}
	m.connects.WithLabelValues(direction).Inc()
	p.m.up.Set(1)
}

func (m *metrics) closed(p *Peer) {
	m.closes.WithLabelValues(string(p.ending.reason)).Inc()
	p.m.up.Set(0)
	for i := range lanes {
		p.m.queue[i].Set(0)
	}
}

func (pm *peerMetrics) received(bytes int) {
	pm.receivedFrames.Inc()
	pm.receivedBytes.Add(float64(bytes))
}
