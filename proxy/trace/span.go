package trace

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	otel "go.opentelemetry.io/otel/trace"

	"kvca/proxy/record"
)

// Span is one request's; it belongs to the request's goroutine.
type Span struct {
	t       *Tracer
	ctx     context.Context
	span    otel.Span
	began   time.Time
	attempt otel.Span // the one that runs, nil for none
	tried   int
}

// TraceID implements record.Span.
func (s *Span) TraceID() string {
	if c := s.span.SpanContext(); c.IsSampled() {
		return c.TraceID().String()
	}
	return ""
}

// inject replaces what the client said of its trace. A tracestate without a
// traceparent that can be read belongs to nothing.
func inject(ctx context.Context, h http.Header) {
	delete(h, "Tracestate")
	propagator.Inject(ctx, propagation.HeaderCarrier(h))
}

// Attempt implements record.Span.
func (s *Span) Attempt(backend string, h http.Header) {
	if !s.span.IsRecording() {
		inject(s.ctx, h)
		return
	}
	s.Attempted(0, "")
	attributes := []attribute.KeyValue{attribute.String("kvca.backend", backend)}
	if s.tried > 0 {
		attributes = append(attributes, attribute.Int("http.request.resend_count", s.tried))
	}
	attributes = appendAddress(attributes, s.t.address(backend))
	s.tried++
	ctx, span := s.t.tracer.Start(s.ctx, "attempt", otel.WithSpanKind(otel.SpanKindClient), otel.WithAttributes(attributes...))
	s.attempt = span
	inject(ctx, h)
}

// Attempted implements record.Span.
func (s *Span) Attempted(status int, failure string) {
	if s.attempt == nil {
		return
	}
	if status != 0 {
		s.attempt.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if failure == "" && status >= 400 {
		failure = strconv.Itoa(status)
	}
	if failure != "" {
		s.attempt.SetAttributes(attribute.String("error.type", failure))
		s.attempt.SetStatus(codes.Error, "")
	}
	s.attempt.End()
	s.attempt = nil
}

// appendAddress adds where the backend is, where that is known.
func appendAddress(to []attribute.KeyValue, address string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		if address != "" {
			to = append(to, attribute.String("server.address", address))
		}
		return to
	}
	to = append(to, attribute.String("server.address", host))
	if n, err := strconv.Atoi(port); err == nil {
		to = append(to, attribute.Int("server.port", n))
	}
	return to
}

// End implements record.Span.
func (s *Span) End(r *record.Record) {
	if !s.span.IsRecording() {
		return
	}
	s.Attempted(0, "")
	s.span.SetName(name(r))
	s.span.SetAttributes(s.attributes(r)...)
	if failure := failed(r); failure != "" {
		s.span.SetAttributes(attribute.String("error.type", failure))
		if r.Status >= http.StatusInternalServerError || r.Status < http.StatusBadRequest {
			s.span.SetStatus(codes.Error, "") // a 4xx is the client's
		}
	}
	if r.FirstByte > 0 {
		s.span.AddEvent("first byte", otel.WithTimestamp(s.began.Add(r.FirstByte)))
	}
	s.span.End(otel.WithTimestamp(s.began.Add(r.Duration)))
}

// failed says what was wrong with a request: our own code, else the status.
func failed(r *record.Record) string {
	if r.Code != "" {
		return r.Code
	}
	if r.Status >= http.StatusBadRequest {
		return strconv.Itoa(r.Status)
	}
	return ""
}
