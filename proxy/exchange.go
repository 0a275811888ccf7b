package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"kvca/proxy/record"
	"kvca/proxy/tenant"
	"kvca/router"
	"kvca/state/cbr"
)

// exchange is one request of a client and its answer, from the first header to
// the last byte. It is owned by the goroutine that serves the request; whatever
// happens there, end gives back all that it holds.
type exchange struct {
	p        *Proxy
	cfg      *current
	w        http.ResponseWriter
	r        *http.Request
	endpoint *endpoint
	id       string
	began    time.Time
	named    time.Time // when the body had been read and named

	upload upload
	body   []byte // what backends are sent
	namer  *namer
	name   cbr.Request
	want   router.Request
	// members are the backends of the model.
	members []*router.Backend
	inquiry *inquiry // what the precise index was asked, nil for nothing
	ticket  *router.Ticket
	print   uint64 // the fingerprint, once the chain is gone
	instead standIns
	// rewritten is the path and query that backends are sent, "" for the client's.
	rewritten string

	tenant *tenant.Tenant // whose key it had, nil where there are no tenants
	permit tenant.Permit  // of the tenant's limits

	place    bool        // among the WebSockets, of one that is open or to be opened
	admitted bool        // the permit is there, which may be one without limits
	trusted  bool        // it may steer engines and set its own priority
	span     record.Span // nil without traces

	status    int
	code      string        // of the gateway's own error
	gateway   time.Duration // until the first attempt, without queued
	queued    time.Duration // the wait for a turn
	pool      string        // in which it waited
	attempts  int
	bodyBytes int64
	used      usage
	streamed  bool
	firstByte time.Duration
	started   bool // the answer's status has gone to the client
	aborted   bool // the connection must be cut, not ended
}

// statusClientGone stands in metrics and logs for requests whose client left
// before it was answered (nginx's number).
const statusClientGone = 499

func (p *Proxy) begin(w http.ResponseWriter, r *http.Request) *exchange {
	p.inFlight.Add(1)
	x := &exchange{p: p, cfg: p.config(), w: w, r: r, began: time.Now(), used: usage{prompt: -1, cached: -1, completion: -1}}
	if x.cfg.Tracer != nil {
		x.span = x.cfg.Tracer.Start(r, x.began)
	}
	x.upload.budget = &p.budget
	return x
}

// serve takes the request through its stations; each ends the exchange by
// returning an error or by having answered.
func (x *exchange) serve() {
	x.id = requestID(x.r.Header)
	x.w.Header()["X-Request-Id"] = []string{x.id}
	if x.shareWithBrowsers() {
		return
	}
	for _, station := range []func() error{x.find, x.authenticate, x.handle} {
		if err := station(); err != nil {
			x.fail(err)
			return
		}
	}
}

// handle answers by itself, or lets a backend do it.
func (x *exchange) handle() error {
	if x.endpoint.local != nil {
		return x.endpoint.local(x)
	}
	for _, station := range []func() error{x.read, x.steer, x.identify, x.admit, x.forward} {
		if err := station(); err != nil {
			return err
		}
	}
	return nil
}

// find looks the endpoint up.
func (x *exchange) find() error {
	x.endpoint = x.cfg.endpointOf(x.r.URL.Path)
	switch e := x.endpoint; {
	case e == nil:
		return &apiError{status: http.StatusNotFound, code: "unknown_path", message: "There is nothing at " + quoteShort(x.r.URL.Path) + ". Paths of engines beyond the usual ones must be configured."}
	case !e.allows(x.r.Method):
		x.w.Header()["Allow"] = e.methods
		return &apiError{status: http.StatusMethodNotAllowed, code: "method_not_allowed", message: "The path " + e.path + " does not take " + quoteShort(x.r.Method) + "."}
	}
	return nil
}

// read takes the body in whole.
func (x *exchange) read() error {
	if coding := x.r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return &apiError{status: http.StatusUnsupportedMediaType, code: "unsupported_encoding", message: "The request body is encoded as " + quoteShort(coding) + ": send it as it is, the gateway has to read it."}
	}
	if err := x.cfg.readBody(x.w, x.r, &x.upload); err != nil {
		return err
	}
	x.body = x.upload.bytes()
	x.bodyBytes = int64(len(x.body))
	return nil
}

// fail answers an error that the gateway itself makes.
func (x *exchange) fail(err error) {
	fault := unreadable(err)
	// A read deadline that passes ends the context too, but the client is there.
	gone := x.r.Context().Err() != nil && fault.status != http.StatusRequestTimeout
	switch {
	case errors.Is(err, errClientGone), gone:
		x.status = statusClientGone
		x.aborted = true
		return
	case x.started:
		x.aborted = true
		return
	}
	x.status, x.code, x.started = fault.status, fault.code, true
	if x.body == nil && x.r.ContentLength != 0 {
		x.abandonUpload()
	}
	fault.write(x.w, x.style(), x.id)
}

// drainTime is how long net/http may read on in a body that was refused, so that
// a client which is still sending gets to see the answer.
const drainTime = 500 * time.Millisecond

// abandonUpload answers without waiting for the rest of the body.
func (x *exchange) abandonUpload() {
	if x.r.ProtoMajor == 1 {
		x.w.Header().Set("Connection", "close")
	}
	http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(drainTime))
}

func (x *exchange) style() style {
	if x.endpoint == nil {
		return openAIStyle
	}
	return x.endpoint.style
}

// end gives everything back, on every path out, a panic included.
func (x *exchange) end() {
	fault := recover()
	if x.ticket != nil {
		x.ticket.Close()
	}
	x.freed()
	x.givePlace()
	x.permit.Close()
	if fault != nil {
		x.panicked(fault)
	}
	x.forget()
	x.dismiss()
	x.p.inFlight.Add(-1)
	x.record()
	if x.aborted {
		panic(http.ErrAbortHandler) // net/http cuts the connection and logs nothing
	}
}

// forget gives back the body and the scratch of naming it.
func (x *exchange) forget() {
	if x.namer != nil {
		x.namer.x = nil
		x.p.namers.Put(x.namer)
		x.namer = nil
	}
	x.upload.release()
}

// panicked answers for a fault in the gateway's own code.
func (x *exchange) panicked(fault any) {
	x.p.metrics.panics.Inc()
	x.cfg.Logger.Error("request panicked", "fault", fault, "request_id", x.id, "stack", string(debug.Stack()))
	if x.started {
		x.aborted = true
		return
	}
	x.fail(&apiError{status: http.StatusInternalServerError, code: "internal_error", message: "The gateway failed on this request; it has been logged. Request id: " + x.id + "."})
}

// record tells of the request that has ended.
func (x *exchange) record() {
	r := x.summary()
	x.p.metrics.request(r)
	if x.span != nil {
		x.span.End(r)
	}
	for _, o := range x.cfg.Observers {
		o.Ended(r)
	}
	log := x.cfg.Logger
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", r.ID), slog.String("endpoint", r.Endpoint), slog.String("model", r.Model),
		slog.Int("status", r.Status), slog.Duration("duration", r.Duration), slog.Duration("first_byte", r.FirstByte),
	}
	if r.Decision != nil {
		attrs = append(attrs, slog.Any("decision", r.Decision))
	}
	log.LogAttrs(context.Background(), slog.LevelDebug, "request", attrs...)
}

// summary is what observers are told.
func (x *exchange) summary() *record.Record {
	r := &record.Record{
		ID: x.id, Method: x.r.Method, Endpoint: "other", Model: x.name.Model, Began: x.began,
		Duration: time.Since(x.began), FirstByte: x.firstByte, Gateway: x.gateway, Queued: x.queued,
		Status: x.status, Code: x.code, BodyBytes: x.bodyBytes, Attempts: x.attempts, Streamed: x.streamed,
		PromptTokens: x.used.prompt, CachedTokens: x.used.cached, OutputTokens: x.used.completion,
	}
	if len(x.cfg.Observers) > 0 {
		r.Client = x.cfg.client(x.r)
	}
	if x.endpoint != nil {
		r.Endpoint = x.endpoint.path
	}
	if x.name.ClientModel != x.name.Model {
		r.Alias = x.name.ClientModel
	}
	if x.tenant != nil {
		r.Tenant = x.tenant.Name
	}
	if x.span != nil {
		r.Trace = x.span.TraceID()
	}
	if x.ticket != nil {
		r.Decision = &x.ticket.Decision
	}
	return r
}

// tried reports the backends that failed this request.
func (x *exchange) tried(b *router.Backend) bool { return slices.Contains(x.want.Tried, b) }
