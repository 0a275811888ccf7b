package tenant

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// authResult is what became of a request's key.
type authResult uint8

const (
	authOK authResult = iota
	authAnonymous
	authMissing
	authUnknown
	authExpired
	authAmbiguous
	authResults
)

var authNames = [authResults]string{"ok", "anonymous", "missing", "unknown", "expired", "ambiguous"}

const (
	reloadOK = iota
	reloadFailed
	reloadResults
)

var reloadNames = [reloadResults]string{"ok", "failed"}

// authMetrics count keys. Each series is there before its first event.
type authMetrics struct {
	results, reloads *prometheus.CounterVec
	auth             [authResults]prometheus.Counter
	reload           [reloadResults]prometheus.Counter
}

func newAuthMetrics() *authMetrics {
	m := &authMetrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kvca_auth_total", Help: "Requests by what became of their key: ok, anonymous for none where that is allowed, else missing, unknown, expired, or ambiguous for two that differ.",
		}, []string{"result"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kvca_keys_reload_total", Help: "Readings of a changed keys file, by result; one that failed changed nothing.",
		}, []string{"result"}),
	}
	for i, name := range authNames {
		m.auth[i] = m.results.WithLabelValues(name)
	}
	for i, name := range reloadNames {
		m.reload[i] = m.reloads.WithLabelValues(name)
	}
	return m
}

// shed is why a request lost its place in the queue.
type shed uint8

const (
	shedFull shed = iota
	shedDeadline
	shedClientGone
	shedReasons
)

var shedNames = [shedReasons]string{"full", "deadline", "client_gone"}

// Whose turns were called from here.
const (
	turnOwn = iota
	turnOther
	turnKinds
)

var turnNames = [turnKinds]string{"own", "other"}

// queueMetrics count waiting. Each series is there before its first event.
type queueMetrics struct {
	waiting [classes]prometheus.Gauge
	waited  prometheus.Histogram
	shed    [shedReasons]prometheus.Counter
	turns   [turnKinds]prometheus.Counter
}

func newQueueMetrics(reg prometheus.Registerer) *queueMetrics {
	f := promauto.With(reg)
	waiting := f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kvca_queue_waiting", Help: "Requests that wait for room in their pool, by their tenant's class.",
	}, []string{"class"})
	lost := f.NewCounterVec(prometheus.CounterOpts{
		Name: "kvca_queue_shed_total", Help: "Requests that lost their place in the queue or got none: the queue was full, their deadline passed, or their client left.",
	}, []string{"reason"})
	turns := f.NewCounterVec(prometheus.CounterOpts{
		Name: "kvca_queue_turns_total", Help: "Turns that were called from this node, by whose request it was: its own, or another node's.",
	}, []string{"node"})
	m := &queueMetrics{waited: f.NewHistogram(prometheus.HistogramOpts{
		Name: "kvca_queue_wait_seconds", Help: "How long requests waited that had to wait and were let in.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120},
	})}
	for c := range m.waiting {
		m.waiting[c] = waiting.WithLabelValues(strconv.Itoa(c))
	}
	for i, name := range turnNames {
		m.turns[i] = turns.WithLabelValues(name)
	}
	for i, name := range shedNames {
		m.shed[i] = lost.WithLabelValues(name)
	}
	return m
}
