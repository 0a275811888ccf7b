// Package record says what is known of a request when it has ended, for whoever
// looks on: the access log, traces, the page. Looking on must not slow requests
// down, and never sees a prompt.
package record

import (
	"net/http"
	"net/netip"
	"time"

	"kvca/router"
)

// Record is one request. It and what it points to belong to the request: an
// Observer copies what it keeps.
type Record struct {
	// ID is the request's X-Request-Id.
	ID string
	// Trace is the id of the trace that the request belongs to, "" for none.
	Trace string
	// Client is who sent it: the peer's address, or what a trusted proxy says.
	Client netip.Addr
	// Method and Endpoint are how it came; Endpoint is a path of the table of
	// endpoints, never one that a client made up.
	Method, Endpoint string
	// Model is the model's own name, Alias the client's where it is another one.
	Model, Alias string
	// Tenant is whose key it had, "" where there are no tenants.
	Tenant string
	// Began is when its headers had been read.
	Began time.Time
	// Duration is until the last byte was written, FirstByte until the backend's
	// first byte came, Gateway until the first attempt was sent off, without
	// Queued, which is the wait for a turn. 0 for what did not happen.
	Duration, FirstByte, Gateway, Queued time.Duration
	// Status is the answer's; 499 where the client left first. Code is the
	// gateway's own error code, "" where it made none.
	Status int
	Code   string
	// BodyBytes is the size of the request's body.
	BodyBytes int64
	// Attempts is how many backends were tried.
	Attempts int
	// Usage is what the engine reported, with -1 for what it did not.
	PromptTokens, CachedTokens, OutputTokens int64
	// Streamed is whether the answer was a stream of events.
	Streamed bool
	// Decision is how it was routed, nil where no backend was chosen. It has no
	// candidates unless details were asked for.
	Decision *router.Decision
}

// Observer is told of each request that has ended, on the request's goroutine: it
// must not wait.
type Observer interface {
	Ended(r *Record)
}

// Tracer begins spans.
type Tracer interface {
	// Start begins the span of a request whose headers have been read; what the
	// client says of its trace stands there.
	Start(r *http.Request, began time.Time) Span
}

// Span is one request's.
type Span interface {
	// TraceID is "" where the request is not sampled.
	TraceID() string
	// Attempt begins the span of an attempt on a backend, and tells the backend of it
	// in h. One that is not over is.
	Attempt(backend string, h http.Header)
	// Attempted ends it, with the status of the backend's answer, 0 for none, and
	// what failed, from a closed set, "" for nothing.
	Attempted(status int, failure string)
	// End closes the span.
	End(r *Record)
}
