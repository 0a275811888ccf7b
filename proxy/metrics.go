package proxy

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"kvca/proxy/record"
)

// metrics are what the proxy counts about requests. Labels come from closed
// sets: endpoints of the table, models that a backend serves, codes of HTTP.
type metrics struct {
	requests      *prometheus.CounterVec
	firstByte     *prometheus.HistogramVec
	duration      *prometheus.HistogramVec
	gatewayTime   prometheus.Histogram
	prompt        *prometheus.CounterVec
	cached        *prometheus.CounterVec
	completion    *prometheus.CounterVec
	retries       prometheus.Counter
	retriesDenied prometheus.Counter
	brokenStreams prometheus.Counter
	engineErrors  prometheus.Counter
	panics        prometheus.Counter
	searches      *prometheus.CounterVec
	standIns      *prometheus.CounterVec
	sockets       prometheus.Gauge
}

// From a millisecond to ten minutes: a queued prefill may take minutes.
var secondsBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	perModel := func(name, help string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"model"})
	}
	seconds := func(name, help string) *prometheus.HistogramVec {
		return f.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: secondsBuckets}, []string{"endpoint"})
	}
	return &metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "kvca_requests_total", Help: "Requests of clients by endpoint, model and status code; 499 means that the client left first.",
		}, []string{"endpoint", "model", "code"}),
		firstByte: seconds("kvca_time_to_first_byte_seconds", "Time from a request's headers to the first byte of the backend's answer."),
		duration:  seconds("kvca_request_duration_seconds", "Time from a request's headers to the end of its answer."),
		gatewayTime: f.NewHistogram(prometheus.HistogramOpts{
			Name: "kvca_gateway_seconds", Help: "Time that a request spends in the gateway itself, from its named body to the backend's connection.",
			Buckets: prometheus.ExponentialBuckets(5e-6, 2, 14),
		}),
		prompt:        perModel("kvca_usage_prompt_tokens_total", "Prompt tokens, as engines reported them."),
		cached:        perModel("kvca_usage_cached_tokens_total", "Prompt tokens served from the cache, as engines reported them."),
		completion:    perModel("kvca_usage_completion_tokens_total", "Generated tokens, as engines reported them."),
		retries:       counter("kvca_retries_total", "Requests that moved on to another backend."),
		retriesDenied: counter("kvca_retries_denied_total", "Requests that could have moved on, had the budget of retries not been spent."),
		brokenStreams: counter("kvca_broken_responses_total", "Answers that broke off after they had begun."),
		engineErrors:  counter("kvca_engine_error_events_total", "Streams in which the engine itself reported an error."),
		panics:        counter("kvca_panics_total", "Faults in the gateway's own code that a request met."),
		searches: f.NewCounterVec(prometheus.CounterOpts{
			Name: "kvca_response_searches_total", Help: "Times that backends were asked which of them keeps a response, by what came of it: found, absent, unclear.",
		}, []string{"result"}),
		standIns: perModel("kvca_fallback_models_total", "Requests that another model answered, by the model that they were for."),
		sockets:  f.NewGauge(prometheus.GaugeOpts{Name: "kvca_websockets", Help: "WebSockets that are open."}),
	}
}

func (m *metrics) request(r *record.Record) {
	m.requests.WithLabelValues(r.Endpoint, r.Model, strconv.Itoa(r.Status)).Inc()
	observe(m.duration.WithLabelValues(r.Endpoint), r.Duration.Seconds(), r.Trace)
	if r.FirstByte > 0 {
		observe(m.firstByte.WithLabelValues(r.Endpoint), r.FirstByte.Seconds(), r.Trace)
	}
}

func (m *metrics) gateway(d time.Duration) { m.gatewayTime.Observe(d.Seconds()) }

func (m *metrics) usage(model string, u usage) {
	m.prompt.WithLabelValues(model).Add(float64(u.prompt))
	m.completion.WithLabelValues(model).Add(float64(u.completion))
	if u.cached > 0 {
		m.cached.WithLabelValues(model).Add(float64(u.cached))
	}
}
