package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"kvca/proxy/backend"
	"kvca/router"
)

// outcome is what came of one attempt.
type outcome struct {
	resp    *http.Response
	err     error
	failure backend.Failure
	lacks   bool // the engine says that it has no such model
}

// mayMoveOn is whether another backend may do better: the connection failed or
// ended before the first byte, or the backend says that it can't take the request,
// or has unloaded the adapter that the request is for.
// A 500 is not among them: the engine accepted the work and would fail again.
func (o *outcome) mayMoveOn() bool {
	if o.lostConnection() || o.lacks {
		return true
	}
	if o.resp == nil {
		return false
	}
	switch o.resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// lostConnection is whether the backend is gone, rather than unwilling.
func (o *outcome) lostConnection() bool {
	return o.failure == backend.ConnectFailure || o.failure == backend.BrokenConnection
}

// forward sends the request to one backend after the other until one answers.
func (x *exchange) forward() error {
	x.prepareHeader()
	x.p.retries.request(x.began)
	x.want.Detail = x.cfg.Logger.Enabled(x.r.Context(), slog.LevelDebug) || x.cfg.WantsDetail != nil && x.cfg.WantsDetail()
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	if err := x.takePlace(); err != nil {
		return err
	}
	if err := x.turn(ctx); err != nil {
		return err
	}
	x.consult()
	var refusal *http.Response // the last answer that only said no
	defer func() { closeBody(refusal) }()
	for attempt := 1; ; attempt++ {
		err := x.route(ctx)
		if attempt == 1 {
			x.booked()
		}
		if err != nil {
			return x.giveUp(refusal, err)
		}
		o := x.attempt(ctx)
		if ctx.Err() != nil {
			closeBody(o.resp)
			return errClientGone
		}
		if o.mayMoveOn() && x.moveOn(attempt, o.lostConnection()) {
			x.leave()
			if o.resp != nil {
				closeBody(refusal)
				refusal = o.resp
			}
			continue
		}
		if o.err != nil {
			return x.giveUp(refusal, o.err)
		}
		moved, err := x.deliver(o.resp, attempt)
		if !moved {
			return err
		}
		x.leave()
	}
}

// route chooses a backend and reserves it.
func (x *exchange) route(ctx context.Context) error {
	ticket, err := x.p.router.Route(ctx, &x.want, x.members)
	if err != nil {
		return err
	}
	x.ticket = ticket
	return nil
}

// attempt sends the request to the ticket's backend, up to the headers of its
// answer, and tells its breaker.
func (x *exchange) attempt(ctx context.Context) outcome {
	b := x.p.pool.Of(x.ticket.Backend)
	if b == nil {
		return outcome{failure: backend.ConnectFailure, err: errors.New("the backend was removed")}
	}
	if x.attempts++; x.attempts == 1 {
		x.gateway = time.Since(x.began) - x.queued
		x.p.metrics.gateway(time.Since(x.named) - x.queued)
	}
	if x.span != nil {
		x.span.Attempt(x.ticket.Backend.ID, x.r.Header)
	}
	resp, err := x.send(ctx, b)
	if err != nil {
		o := outcome{err: err, failure: backend.Classify(err, 0)}
		x.attempted(0, o.failure)
		if ctx.Err() == nil {
			b.Report(o.failure, x.fingerprint())
		}
		return o
	}
	o := outcome{resp: resp, failure: backend.Classify(nil, resp.StatusCode)}
	x.attempted(resp.StatusCode, o.failure)
	if x.name.Model != "" && backend.LacksModel(resp, x.name.Model) {
		b.Lacks(x.name.Model)
		o.lacks = true
	}
	if o.failure != backend.NoFailure {
		b.Report(o.failure, x.fingerprint())
	}
	return o
}

// target is the path and query that backends are sent: the endpoint's own spelling,
// so that nobody behind reads another path than was looked up.
func (x *exchange) target() string {
	switch {
	case x.endpoint.ids:
		return x.r.URL.RequestURI() // of plain names only
	case x.r.URL.RawQuery == "":
		return x.endpoint.path
	}
	return x.endpoint.path + "?" + x.r.URL.RawQuery
}

// attempted ends the span of an attempt.
func (x *exchange) attempted(status int, f backend.Failure) {
	if x.span == nil {
		return
	}
	failure := ""
	if f != backend.NoFailure {
		failure = f.String()
	}
	x.span.Attempted(status, failure)
}

// fingerprint tells prompts apart, so that one which fails everywhere is not
// taken for a fleet that fails.
func (x *exchange) fingerprint() uint64 {
	if x.print != 0 {
		return x.print
	}
	if n := len(x.want.Chain); n > 0 {
		return x.want.Chain[n-1]
	}
	return uint64(x.want.Bytes)
}

// moveOn is whether the request may be tried on one more backend. The budget
// keeps a fleet that refuses work from being asked for it three times over. A
// backend that dies with many requests in flight is another matter: it gets no
// more of them, and none of its clients is to notice, so the first move away from
// a lost connection is counted and never denied.
func (x *exchange) moveOn(attempt int, lost bool) bool {
	if attempt >= x.cfg.Attempts || !x.another() {
		return x.stepDown(lost)
	}
	if !x.p.retries.allow(time.Now(), lost && attempt == 1) {
		x.p.metrics.retriesDenied.Inc()
		return false
	}
	x.p.metrics.retries.Inc()
	return true
}

// another is whether a backend is left that may be tried.
func (x *exchange) another() bool {
	for _, b := range x.members {
		if b != x.ticket.Backend && b.Standing() != router.Draining && !x.tried(b) {
			return true
		}
	}
	return false
}

// leave ends the attempt on the ticket's backend.
func (x *exchange) leave() {
	x.ticket.Close()
	x.want.Tried = append(x.want.Tried, x.ticket.Backend)
}

// giveUp answers with what is best to say once nothing more is tried: the last
// backend's own refusal, else an error of ours.
func (x *exchange) giveUp(refusal *http.Response, err error) error {
	if refusal != nil {
		_, err := x.deliver(refusal, x.cfg.Attempts)
		return err
	}
	return x.upstreamError(err)
}

// upstreamError is the client's error for a failed attempt.
func (x *exchange) upstreamError(err error) error {
	if errors.Is(err, router.ErrNoBackend) {
		if len(x.want.Tried) > 0 {
			return &apiError{status: http.StatusBadGateway, code: "backend_failed", message: "Every backend that was tried failed before it answered. Try again."}
		}
		return unavailable("no_backend", "No backend of this model can take the request now. Try again shortly.")
	}
	switch backend.Classify(err, 0) {
	case backend.HeaderTimeout:
		return &apiError{status: http.StatusGatewayTimeout, code: "backend_timeout", message: "The backend did not answer in time."}
	case backend.LocalFailure:
		return unavailable("gateway_busy", "The gateway is out of connections. Try again shortly.")
	case backend.ConnectFailure:
		return &apiError{status: http.StatusBadGateway, code: "backend_unreachable", message: "The backend could not be reached. Try again."}
	default:
		return &apiError{status: http.StatusBadGateway, code: "backend_failed", message: "The backend closed the connection before it answered. Try again."}
	}
}

func closeBody(resp *http.Response) {
	if resp != nil {
		resp.Body.Close()
	}
}
