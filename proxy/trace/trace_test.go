package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"kvca/proxy/record"
	"kvca/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func count(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// collector is an OTLP receiver.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*tracepb.Span
	resource map[string]string
	header   http.Header
	path     string
	status   int  // of answers, 0 for 200
	once     bool // only of the first one
	answer   []byte
	hang     chan struct{} // what answers wait for; nil for nothing
}

func newCollector(t testing.TB) *collector {
	c := new(collector)
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.hang != nil {
		select {
		case <-c.hang:
		case <-r.Context().Done():
		}
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(body)
	}
	text, err := io.ReadAll(body)
	// A request to the collector has the same encoding as TracesData.
	var data tracepb.TracesData
	if err != nil || proto.Unmarshal(text, &data) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header, c.path = r.Header, r.URL.Path
	if c.status != 0 {
		w.WriteHeader(c.status)
		if c.once {
			c.status = 0
		}
		return
	}
	for _, of := range data.ResourceSpans {
		c.resource = values(of.Resource.Attributes)
		for _, s := range of.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(c.answer)
}

// values are attributes as text.
func values(list []*commonpb.KeyValue) map[string]string {
	m := make(map[string]string)
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		default:
			m[kv.Key] = strings.TrimSpace(kv.Value.String()[strings.Index(kv.Value.String(), ":")+1:])
		}
	}
	return m
}

// begin makes a tracer that sends to the collector.
func begin(t testing.TB, c *collector, change func(*Config)) *Tracer {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Endpoint, cfg.Node, cfg.Version, cfg.Logger = c.URL, "gw-1", "1.2.3", slog.New(slog.DiscardHandler)
	if change != nil {
		change(&cfg)
	}
	tracer, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tracer.Close(context.Background()) })
	return tracer
}

// received closes the tracer and gives what the collector got.
func received(t *testing.T, tracer *Tracer, c *collector) []*tracepb.Span {
	t.Helper()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

// request is a client's, with headers by pairs.
func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions?key=secret-in-query", strings.NewReader("secret-prompt"))
	r.Header.Set("Authorization", "Bearer secret-key")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func ended() *record.Record {
	return &record.Record{
		ID: "req-1", Method: "POST", Endpoint: "/v1/chat/completions", Model: "llama", Alias: "best", Tenant: "acme",
		Duration: 1500 * time.Millisecond, FirstByte: 61 * time.Millisecond, Gateway: 120 * time.Microsecond, Queued: 2 * time.Millisecond,
		Status: 200, Attempts: 2, PromptTokens: 500, CachedTokens: 400, OutputTokens: 100, Streamed: true,
		Decision: &router.Decision{
			Phase: "follow-up", Policy: "cost", Reason: router.ReasonHit, ChainBlocks: 10, MatchedBlocks: 8, NovelBlocks: 2,
			Backend: "gpu-1", Owner: "gw-2", Degraded: true, BlockUnit: "cbr", PredictedTokens: 300,
		},
	}
}

const (
	clientTrace   = "0af7651916cd43dd8448eb211c80319c"
	clientSpan    = "b7ad6b7169203331"
	clientSampled = "00-" + clientTrace + "-" + clientSpan + "-01"
	clientSilent  = "00-" + clientTrace + "-" + clientSpan + "-00"
)

func TestSpanSaysWhatBecameOfTheRequest(t *testing.T) {
	c := newCollector(t)
	tracer := begin(t, c, func(cfg *Config) {
		cfg.Address = func(string) string { return "10.0.0.11:8000" }
	})
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	span := tracer.Start(request(), began)
	id := span.TraceID()
	span.End(ended())
	spans := received(t, tracer, c)
	if len(spans) != 1 || len(id) != 32 {
		t.Fatalf("%d spans, trace %q", len(spans), id)
	}
	s := spans[0]
	got := values(s.Attributes)
	for key, want := range map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "kvca", "gen_ai.request.model": "best", "gen_ai.response.model": "llama",
		"gen_ai.usage.input_tokens": "500", "gen_ai.usage.output_tokens": "100", "gen_ai.usage.cache_read.input_tokens": "400",
		"gen_ai.request.stream": "true", "gen_ai.response.time_to_first_chunk": "0.061",
		"http.request.method": "POST", "http.route": "/v1/chat/completions", "http.response.status_code": "200",
		"server.address": "10.0.0.11", "server.port": "8000",
		"kvca.request_id": "req-1", "kvca.tenant": "acme", "kvca.attempts": "2", "kvca.queued": "0.002", "kvca.gateway": "0.00012",
		"kvca.phase": "follow-up", "kvca.policy": "cost", "kvca.reason": "hit", "kvca.chain_blocks": "10", "kvca.matched_blocks": "8", "kvca.novel_blocks": "2",
		"kvca.backend": "gpu-1", "kvca.owner": "gw-2", "kvca.degraded": "true", "kvca.block_unit": "cbr", "kvca.predicted_cached_tokens": "300",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if s.Name != "chat llama" || s.Kind != tracepb.Span_SPAN_KIND_SERVER || s.StartTimeUnixNano != uint64(began.UnixNano()) || s.EndTimeUnixNano-s.StartTimeUnixNano != 15e8 {
		t.Errorf("%s, %v, %d to %d", s.Name, s.Kind, s.StartTimeUnixNano, s.EndTimeUnixNano)
	}
	if len(s.Events) != 1 || s.Events[0].TimeUnixNano-s.StartTimeUnixNano != 61e6 {
		t.Errorf("events %v", s.Events)
	}
	if r := c.resource; r["service.name"] != "kvca" || r["service.instance.id"] != "gw-1" || r["service.version"] != "1.2.3" {
		t.Errorf("resource %v", r)
	}
	if c.path != "/v1/traces" {
		t.Errorf("sent to %s", c.path)
	}
	if text := s.String(); strings.Contains(text, "secret") {
		t.Errorf("the span tells a secret: %s", text)
	}
}

func TestClientsTraceGoesOnThroughUs(t *testing.T) {
	c := newCollector(t)
	tracer := begin(t, c, func(cfg *Config) { cfg.Ratio = 0 })
	r := request("traceparent", clientSampled, "tracestate", "vendor=x")
	span := tracer.Start(r, time.Now())
	span.Attempt("gpu-1", r.Header)
	parent := strings.Split(r.Header.Get("traceparent"), "-")
	span.End(ended())
	spans := received(t, tracer, c)
	if len(spans) != 2 || span.TraceID() != clientTrace {
		t.Fatalf("%d spans, trace %s", len(spans), span.TraceID())
	}
	if s := spans[1]; hexOf(s.TraceId) != clientTrace || hexOf(s.ParentSpanId) != clientSpan || parent[2] != hexOf(spans[0].SpanId) {
		t.Errorf("trace %x, parent %x, span %x; the backend was sent %v", s.TraceId, s.ParentSpanId, s.SpanId, parent)
	}
	if parent[1] != clientTrace || parent[3] != "01" || r.Header.Get("tracestate") != "vendor=x" {
		t.Errorf("the backend was sent %v, %q", parent, r.Header.Get("tracestate"))
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var s []byte
	for _, x := range b {
		s = append(s, digits[x>>4], digits[x&15])
	}
	return string(s)
}

func TestRequestThatIsNotSampledTellsTheBackendSo(t *testing.T) {
	c := newCollector(t)
	tracer := begin(t, c, func(cfg *Config) { cfg.Ratio = 0 })
	for _, headers := range [][]string{
		nil, {"traceparent", clientSilent}, {"traceparent", "garbage", "tracestate", "vendor=x"},
	} {
		r := request(headers...)
		span := tracer.Start(r, time.Now()).(*Span)
		span.Attempt("gpu-1", r.Header)
		span.Attempted(200, "")
		span.End(ended())
		if id := span.TraceID(); id != "" {
			t.Errorf("%v: trace %s", headers, id)
		}
		if p := r.Header.Get("traceparent"); len(p) != 55 || !strings.HasSuffix(p, "-00") {
			t.Errorf("%v: the backend was sent %q", headers, p)
		}
		if state := r.Header.Get("tracestate"); state != "" {
			t.Errorf("%v: a tracestate of no trace is passed on: %q", headers, state)
		}
	}
	if spans := received(t, tracer, c); len(spans) != 0 {
		t.Errorf("%d spans", len(spans))
	}
}

func TestAttemptsAreSpansOfTheirOwn(t *testing.T) {
	c := newCollector(t)
	tracer := begin(t, c, func(cfg *Config) { cfg.Address = func(id string) string { return id + ":8000" } })
	r := request()
	span := tracer.Start(r, time.Now()).(*Span)
	var sent []string
	for _, backend := range []string{"gpu-1", "gpu-2", "gpu-3"} {
		span.Attempt(backend, r.Header)
		sent = append(sent, strings.Split(r.Header.Get("traceparent"), "-")[2])
		switch backend {
		case "gpu-1":
			span.Attempted(0, "connect")
		case "gpu-2":
			span.Attempted(503, "")
		}
	}
	failed := ended()
	failed.Status, failed.Code = 502, "backend_failed"
	span.End(failed) // the third attempt ends with it
	spans := received(t, tracer, c)
	if len(spans) != 4 {
		t.Fatalf("%d spans", len(spans))
	}
	whole := spans[3]
	for i, want := range []map[string]string{
		{"kvca.backend": "gpu-1", "server.address": "gpu-1", "error.type": "connect", "http.request.resend_count": "", "http.response.status_code": ""},
		{"kvca.backend": "gpu-2", "error.type": "503", "http.request.resend_count": "1", "http.response.status_code": "503"},
		{"kvca.backend": "gpu-3", "error.type": "", "http.request.resend_count": "2"},
	} {
		s := spans[i]
		if s.Kind != tracepb.Span_SPAN_KIND_CLIENT || !bytes.Equal(s.ParentSpanId, whole.SpanId) || hexOf(s.SpanId) != sent[i] {
			t.Errorf("attempt %d: %v, parent %x, span %x, the backend was sent %s", i, s.Kind, s.ParentSpanId, s.SpanId, sent[i])
		}
		for key, value := range want {
			if got := values(s.Attributes)[key]; got != value {
				t.Errorf("attempt %d: %s is %q, want %q", i, key, got, value)
			}
		}
	}
	if got := values(whole.Attributes)["error.type"]; got != "backend_failed" || whole.Status.Code != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("error %q, status %v", got, whole.Status)
	}
}

func TestErrorOfTheClientIsNoErrorOfTheSpan(t *testing.T) {
	c := newCollector(t)
	tracer := begin(t, c, nil)
	r := ended()
	r.Status, r.Code, r.Decision, r.Endpoint, r.Model = 404, "unknown_path", nil, "other", ""
	span := tracer.Start(request(), time.Now())
	span.End(r)
	s := received(t, tracer, c)[0]
	if got := values(s.Attributes); got["error.type"] != "unknown_path" || got["gen_ai.operation.name"] != "" || s.Status.GetCode() != tracepb.Status_STATUS_CODE_UNSET || s.Name != "POST other" {
		t.Errorf("%s, status %v, %v", s.Name, s.Status, got)
	}
}

func TestHeadersFileAndVariables(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/base")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-env=1")
	t.Setenv("OTEL_SERVICE_NAME", "by-variable")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	tracer := begin(t, c, func(cfg *Config) { cfg.Endpoint = "" })
	tracer.Start(request(), time.Now()).End(ended())
	tracer.Start(request("traceparent", clientSampled), time.Now()).End(ended())
	if spans := received(t, tracer, c); len(spans) != 1 {
		t.Errorf("%d spans", len(spans))
	}
	if c.path != "/base/v1/traces" || c.header.Get("x-env") != "1" || c.header.Get("Content-Encoding") != "gzip" || c.resource["service.name"] != "by-variable" || c.resource["deployment.environment.name"] != "test" {
		t.Errorf("%s %v %v", c.path, c.header, c.resource)
	}
	file := filepath.Join(t.TempDir(), "headers")
	os.WriteFile(file, []byte("# of the collector\nAuthorization: Bearer secret\n\nX-Scope: a: b\n"), 0o600)
	tracer = begin(t, c, func(cfg *Config) {
		cfg.HeadersFile, cfg.Service, cfg.Ratio = file, "by-setting", 1
		cfg.Endpoint = c.URL + "/own/path"
	})
	tracer.Start(request(), time.Now()).End(ended())
	received(t, tracer, c)
	if c.path != "/own/path" || c.header.Get("Authorization") != "Bearer secret" || c.header.Get("X-Scope") != "a: b" || c.resource["service.name"] != "by-setting" {
		t.Errorf("%s %v %v", c.path, c.header, c.resource)
	}
}

func TestWhetherThereIsACollector(t *testing.T) {
	cfg := DefaultConfig()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	if cfg.Enabled() {
		t.Error("enabled without an endpoint")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:4318")
	if !cfg.Enabled() {
		t.Error("the variable was not heard")
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	if cfg.Enabled() {
		t.Error("enabled with exporter none")
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if cfg.Enabled() {
		t.Error("enabled with the SDK disabled")
	}
}

func TestFaultsOfTheSettingsAreAllTold(t *testing.T) {
	cfg := Config{Endpoint: "otel:4318", Protocol: "grpc", Ratio: 1.5, Logger: slog.New(slog.DiscardHandler)}
	_, err := New(cfg)
	if err == nil {
		t.Fatal("they were taken")
	}
	for _, want := range []string{"http://HOST:4318", `"grpc"`, "1.5"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told: %v", want, err)
		}
	}
	file := filepath.Join(t.TempDir(), "headers")
	os.WriteFile(file, []byte("A: b\nBearer secret\n"), 0o600)
	cfg = Config{Endpoint: "http://127.0.0.1:4318", HeadersFile: file, Logger: slog.New(slog.DiscardHandler)}
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a line without a name: %v", err)
	}
}

func TestFullQueueDropsAndCountsAndCloseEndsInTime(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
	c := newCollector(t)
	c.hang = make(chan struct{})
	tracer := begin(t, c, nil)
	for range 20 {
		tracer.Start(request(), time.Now()).End(ended())
	}
	m := tracer.exporter.metrics
	if got := count(t, m.full); got != 12 {
		t.Errorf("%v spans were dropped, want 12", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := tracer.Close(ctx); err == nil {
		t.Error("what the collector did not take is not told of")
	}
	if got := count(t, m.failed); got != 8 {
		t.Errorf("%v spans were lost, want 8", got)
	}
	tracer.Start(request(), time.Now()).End(ended())
	if got := count(t, m.closed); got > 1 {
		t.Errorf("%v spans after the end", got)
	}
	close(c.hang)
}

func TestCollectorThatRefusesIsReportedOnce(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	c := newCollector(t)
	c.status = http.StatusBadRequest
	var log bytes.Buffer
	tracer := begin(t, c, func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for range 3 {
		tracer.Start(request(), time.Now()).End(ended())
	}
	received(t, tracer, c)
	if got := count(t, tracer.exporter.metrics.failed); got != 3 {
		t.Errorf("%v spans were lost, want 3", got)
	}
	if text := log.String(); strings.Count(text, "can't be sent") != 1 {
		t.Errorf("logged %s", text)
	}
}

func TestCollectorThatIsBusyIsAskedAgain(t *testing.T) {
	c := newCollector(t)
	c.status, c.once = http.StatusServiceUnavailable, true
	tracer := begin(t, c, nil)
	tracer.Start(request(), time.Now()).End(ended())
	if spans := received(t, tracer, c); len(spans) != 1 {
		t.Errorf("%d spans came", len(spans))
	}
	if got := count(t, tracer.exporter.metrics.failed); got != 0 {
		t.Errorf("%v spans were lost", got)
	}
}

func TestSpansThatTheCollectorRefusesAmongOthersAreCounted(t *testing.T) {
	c := newCollector(t)
	c.answer = []byte{0x0a, 0x06, 0x08, 0x02, 0x12, 0x02, 'n', 'o'} // 2 spans, "no"
	tracer := begin(t, c, nil)
	for range 5 {
		tracer.Start(request(), time.Now()).End(ended())
	}
	received(t, tracer, c)
	m := tracer.exporter.metrics
	if sent, lost := count(t, m.sent), count(t, m.failed); sent != 3 || lost != 2 {
		t.Errorf("%v spans were sent and %v lost, want 3 and 2", sent, lost)
	}
}

func TestVariablesThatCannotBeAreTold(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "secret")
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", filepath.Join(t.TempDir(), "none"))
	_, err := New(Config{Endpoint: "http://127.0.0.1:4318", Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Fatal("they were taken")
	}
	for _, want := range []string{"_TIMEOUT", "_COMPRESSION", "_HEADERS", "_CERTIFICATE"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not told: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("a header is told: %v", err)
	}
}

func FuzzRejected(f *testing.F) {
	f.Add([]byte{0x0a, 0x06, 0x08, 0x02, 0x12, 0x02, 'n', 'o'})
	f.Fuzz(func(t *testing.T, answer []byte) {
		var some *rejectedError
		if err := rejected(answer); err != nil && (!errors.As(err, &some) || some.spans < 1 || len(some.message) > maxValue) {
			t.Errorf("%v", err)
		}
	})
}

func FuzzParseHeaders(f *testing.F) {
	f.Add([]byte("A: b\n# c\n\nD:e: f\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		headers, err := parseHeaders(text)
		if err != nil {
			return
		}
		h := make(http.Header)
		for name, value := range headers {
			if strings.ContainsAny(name+value, "\r\n\x00") {
				t.Errorf("%q: %q", name, value)
			}
			h.Set(name, value)
		}
		if err := h.Write(io.Discard); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkSpan(b *testing.B) {
	for _, c := range []struct {
		name  string
		ratio float64
	}{{"unsampled", 0}, {"sampled, two spans", 1}} {
		b.Run(c.name, func(b *testing.B) {
			tracer := begin(b, newCollector(b), func(cfg *Config) { cfg.Ratio = c.ratio })
			b.ReportAllocs()
			r := ended()
			for b.Loop() {
				in := &http.Request{Header: make(http.Header, 1)}
				span := tracer.Start(in, time.Now()).(*Span)
				span.Attempt("gpu-1", in.Header)
				span.Attempted(200, "")
				span.TraceID()
				span.End(r)
			}
		})
	}
}
