package backend

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// exchange is one attempt at a request: what net/http needs to be given and what
// it says on the way, in a single allocation. It becomes the response's body.
type exchange struct {
	trace    httptrace.ClientTrace
	url      url.URL
	body     payload
	answer   io.ReadCloser // the response's body
	data     []byte
	gotAt    time.Time   // when the attempt had a connection; zero if it got none
	reused   bool        // that had served before
	answered atomic.Bool // the first byte of a response has arrived

	mu      sync.Mutex
	replays []*payload
}

func newExchange(ctx context.Context) (*exchange, context.Context) {
	e := new(exchange)
	e.trace.GotConn = e.gotConn
	e.trace.GotFirstResponseByte = e.firstByte
	return e, httptrace.WithClientTrace(ctx, &e.trace)
}

func (e *exchange) gotConn(info httptrace.GotConnInfo) { e.gotAt, e.reused = time.Now(), info.Reused }
func (e *exchange) firstByte()                         { e.answered.Store(true) }

// replay is the request's GetBody: net/http asks for it when it has written
// nothing of the first.
func (e *exchange) replay() (io.ReadCloser, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &payload{rest: e.data}
	e.replays = append(e.replays, p)
	return p, nil
}

// release lets go of the caller's body.
func (e *exchange) release() {
	e.body.detach()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.data = nil
	for _, p := range e.replays {
		p.detach()
	}
}

// TryRelease ends the use of the request's body if it has been sent whole, and
// reports whether it has. A response that takes long need not hold its request:
// callers find the method on the response's body.
func (e *exchange) TryRelease() bool {
	if !e.body.sent() {
		return false
	}
	e.release()
	return true
}

// Read reads the response's body.
func (e *exchange) Read(b []byte) (int, error) { return e.answer.Read(b) }

// Close closes the response's body, and with it ends the use of the request's.
func (e *exchange) Close() error {
	err := e.answer.Close()
	e.release()
	return err
}

// stale reports whether the failure means only that the connection had been
// closed while it lay idle: it had served before and ended, within the time a
// round trip may take, before any byte of a response.
func (e *exchange) stale(within time.Duration) bool {
	return e.reused && !e.answered.Load() && time.Since(e.gotAt) < within
}

// Do sends a request and returns the response, whose body the caller closes.
// target is the path and query as the client sent them; they are joined to the
// backend's base URL. The body is read no more once Do has failed or the
// response's body is closed. The header is not changed.
//
// A request that meets a connection which the backend has just closed is sent
// once more, on another one. Every other failure is returned as an *Error, for
// Classify and Report, except for the context's own.
func (b *Backend) Do(ctx context.Context, method, target string, header http.Header, body []byte) (*http.Response, error) {
	header = b.authorized(header)
	resp, again, err := b.attempt(ctx, method, target, header, body)
	if again {
		b.dropIdle()
		resp, _, err = b.attempt(ctx, method, target, header, body)
	}
	return resp, err
}

func (b *Backend) attempt(ctx context.Context, method, target string, header http.Header, body []byte) (*http.Response, bool, error) {
	e, traced := newExchange(ctx)
	b.join(&e.url, target)
	req := b.outline.WithContext(traced)
	req.Method, req.URL, req.Header = method, &e.url, header
	e.carry(req, body)
	return b.roundTrip(ctx, e, req)
}

// smallBody fits into the write buffer along with ordinary headers.
const smallBody = 6 << 10

// carry gives the request its body. net/http writes headers and body at once only
// for the readers it knows; for a small body that is worth a copy.
func (e *exchange) carry(req *http.Request, body []byte) {
	req.ContentLength = int64(len(body))
	switch {
	case len(body) == 0:
	case len(body) <= smallBody:
		small := bytes.Clone(body)
		req.Body = io.NopCloser(bytes.NewReader(small))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(small)), nil }
	default:
		e.data, e.body.rest = body, body
		req.Body, req.GetBody = &e.body, e.replay
	}
}

// roundTrip makes one attempt and reports whether it is worth another on a fresh
// connection.
func (b *Backend) roundTrip(ctx context.Context, e *exchange, req *http.Request) (*http.Response, bool, error) {
	resp, err := b.data.RoundTrip(req)
	if err == nil && switched(req, resp) {
		return resp, false, nil
	}
	if err == nil && resp.StatusCode >= 200 {
		e.answer, resp.Body = resp.Body, e
		return resp, false, nil
	}
	if err == nil { // a 101 that was not asked for, and what is below 100 is no status
		resp.Body.Close()
		err = fmt.Errorf("status %d: want an answer of 200 to 599", resp.StatusCode)
	}
	e.release()
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	failure := e.failure(err)
	if failure == ConnectFailure && refused(err) {
		b.refused(err)
	}
	again := failure == BrokenConnection && e.stale(b.pool.config.ConnectTimeout)
	return nil, again, &Error{Backend: b.config.ID, Failure: failure, Err: err}
}

func (e *exchange) failure(err error) Failure {
	timeout, _ := err.(interface{ Timeout() bool })
	switch {
	case e.gotAt.IsZero() && exhausted(err):
		return LocalFailure
	case e.gotAt.IsZero():
		return ConnectFailure
	case timeout != nil && timeout.Timeout():
		return HeaderTimeout
	}
	return BrokenConnection
}

// dropIdle closes the idle connections, so that a second attempt gets a fresh
// one, or one that has just served.
func (b *Backend) dropIdle() {
	b.count.staleRetries.Add(1)
	b.data.CloseIdleConnections()
}

// authorized gives the header this backend's key. The caller's map is left
// alone: it may go to another backend next.
func (b *Backend) authorized(header http.Header) http.Header {
	if b.authorization == nil {
		return header
	}
	header = maps.Clone(header)
	if header == nil {
		header = make(http.Header, 1)
	}
	header["Authorization"] = b.authorization
	return header
}

// join sets u to the base URL with the client's path and query behind it, as they
// are spelled.
func (b *Backend) join(u *url.URL, target string) {
	*u = *b.base
	path, query, found := strings.Cut(target, "?")
	u.RawQuery, u.ForceQuery = query, found && query == ""
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	if !strings.Contains(path, "%") && u.RawPath == "" {
		u.Path += path
		return
	}
	escaped := b.base.EscapedPath() + path
	if plain, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = plain, escaped
		return
	}
	u.Path, u.RawPath = u.Path+path, ""
}
