package proxy

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvca/proxy/backend"
)

// chunkBytes is how much of an answer is read at a time.
const chunkBytes = 32 << 10

// deliver passes a backend's answer on. Nothing goes to the client before the
// first byte of the body is there, so until then the request may still move on
// to another backend: then it returns true and has sent nothing.
func (x *exchange) deliver(resp *http.Response, attempt int) (moved bool, err error) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return false, x.tunnel(resp)
	}
	defer resp.Body.Close()
	buf := x.p.chunks.Get().(*[]byte)
	defer x.p.chunks.Put(buf)
	a := x.answer(resp)
	x.streamed = a.watch.events
	if a.good && !a.watch.events {
		x.ticket.Begin()
	}
	n, err := resp.Body.Read(*buf)
	if n == 0 && err != nil && err != io.EOF {
		return x.brokenEarly(attempt)
	}
	x.firstByte = time.Since(x.began)
	if n > 0 {
		a.watch.feed((*buf)[:n])
	}
	if begun := n > 0 || !a.watch.events; a.good && begun && !a.watch.failed {
		x.ticket.Begin()
		x.report(backend.NoFailure)
	}
	x.lighten(resp)
	x.givePlace() // a refusal may be long, and is no WebSocket
	x.start(resp)
	return false, x.copy(a, *buf, n, err)
}

// answer is a backend's answer on its way to the client.
type answer struct {
	resp  *http.Response
	watch *watch
	good  bool // a 2xx that may teach
	flush bool // each chunk goes out at once
}

func (x *exchange) answer(resp *http.Response) *answer {
	kind := resp.Header.Get("Content-Type")
	lines := strings.HasPrefix(kind, "application/x-ndjson")
	events := lines || strings.HasPrefix(kind, "text/event-stream")
	a := &answer{
		resp: resp, good: resp.StatusCode/100 == 2,
		flush: events || resp.ContentLength < 0,
		watch: newWatch(x.style(), events),
	}
	a.watch.lines, a.watch.native = lines, x.endpoint.native
	if resp.Header.Get("Content-Encoding") != "" {
		a.watch.blind = true
	}
	if a.good && a.watch.style == responsesStyle { // a client may leave and ask for it again
		a.watch.keeps = x.keepsResponse
	}
	return a
}

// brokenEarly handles an answer that ended before its first byte.
func (x *exchange) brokenEarly(attempt int) (bool, error) {
	if x.r.Context().Err() != nil {
		return false, errClientGone
	}
	x.report(backend.BrokenConnection)
	if x.moveOn(attempt, true) {
		return true, nil
	}
	return false, x.upstreamError(&backend.Error{Backend: x.ticket.Backend.ID, Failure: backend.BrokenConnection, Err: io.ErrUnexpectedEOF})
}

// keepsResponse notes that the backend keeps a response.
func (x *exchange) keepsResponse(id string) { x.p.pins.put(id, x.ticket.Backend.ID) }

// report tells the breaker of the ticket's backend.
func (x *exchange) report(f backend.Failure) {
	if b := x.p.pool.Of(x.ticket.Backend); b != nil {
		b.Report(f, x.fingerprint())
	}
}

// lighten gives the request's body and scratch back once the answer has begun: a
// stream may last for minutes, and its prompt is not needed again.
func (x *exchange) lighten(resp *http.Response) {
	b, ok := resp.Body.(interface{ TryRelease() bool })
	if !ok || !b.TryRelease() {
		return
	}
	x.body = nil
	x.upload.release()
	if x.ticket.Spent() {
		x.print, x.want.Chain = x.fingerprint(), nil
		x.forget()
	}
}

// start sends the status and the headers.
func (x *exchange) start(resp *http.Response) {
	x.ownSharing(resp.Header)
	x.tellModel()
	x.copyHeader(resp.Header)
	x.status, x.started = resp.StatusCode, true
	x.w.WriteHeader(resp.StatusCode)
}

// copy sends the body: first the n bytes that were read already, with the error
// that came with them, then what follows.
func (x *exchange) copy(a *answer, buf []byte, n int, err error) error {
	out := newClientWriter(x.w, x.cfg.WriteIdle, a.flush)
	for {
		if n > 0 {
			if writeErr := out.write(buf[:n]); writeErr != nil {
				x.settleCut(a)
				return errClientGone
			}
		}
		if err != nil {
			break
		}
		if n, err = a.resp.Body.Read(buf); n > 0 {
			a.watch.feed(buf[:n])
		}
	}
	if x.r.Context().Err() != nil {
		x.settleCut(a)
		return errClientGone
	}
	return x.finish(a, out, err)
}

// finish ends the answer: as the backend ended it, or, where the stream broke, in
// the way of its API and then by cutting the connection.
func (x *exchange) finish(a *answer, out *clientWriter, err error) error {
	a.watch.end()
	broken := err != io.EOF || (a.watch.events && !a.watch.blind && a.good && !a.watch.complete && endsByClosing(a.resp))
	if broken {
		x.settleCut(a)
		x.report(backend.StreamFailure)
		x.p.metrics.brokenStreams.Inc()
		if a.watch.events && !a.watch.blind {
			fault := &apiError{status: http.StatusBadGateway, code: "stream_broken", message: "The backend's stream ended before it was complete."}
			out.write(a.lastWords(fault, x)) // best effort: the connection is cut next
		}
		out.rc.Flush()
		x.aborted = true
		return nil
	}
	if a.watch.failed {
		x.report(backend.StreamFailure)
		x.p.metrics.engineErrors.Inc()
	} else if a.good {
		x.learnAnswer(a)
	}
	for name, values := range a.resp.Trailer {
		if name != "Content-Length" && !slices.Contains(hopByHop, name) {
			x.w.Header()[http.TrailerPrefix+name] = values
		}
	}
	return nil
}

// lastWords are what a stream that broke ends with.
func (a *answer) lastWords(fault *apiError, x *exchange) []byte {
	if a.watch.lines {
		return append(fault.body(x.style(), x.id), '\n')
	}
	return fault.event(x.style(), x.id)
}

// learnAnswer takes what the answer says about its prompt and about itself.
func (x *exchange) learnAnswer(a *answer) {
	if u, ok := a.watch.usage(); ok {
		x.used = u
		x.settle(u)
		if !x.endpoint.native || u.cached >= 0 { // Ollama may count what it computed only
			x.ticket.Observe(u.prompt, u.cached)
		}
		x.learnIndex(u)
		x.p.metrics.usage(x.name.Model, u)
	} else {
		x.settle(usage{prompt: x.guess(), completion: a.watch.chunks})
	}
}

// settleCut charges what was sent of an answer that did not come to its end.
func (x *exchange) settleCut(a *answer) {
	if u, ok := a.watch.usage(); ok {
		x.settle(u)
		return
	}
	x.settle(usage{prompt: x.guess(), completion: a.watch.chunks})
}

// endsByClosing is whether only the end of the connection ends the body, so that
// a complete answer can't be told from a broken one by HTTP alone.
func endsByClosing(resp *http.Response) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
}

// clientWriter writes to the client. A client that takes nothing for a while is
// cut off by a deadline that each write may move.
type clientWriter struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	idle  time.Duration
	armed time.Time
	flush bool
}

func newClientWriter(w http.ResponseWriter, idle time.Duration, flush bool) *clientWriter {
	return &clientWriter{w: w, rc: http.NewResponseController(w), idle: idle, flush: flush}
}

func (c *clientWriter) write(b []byte) error {
	if now := time.Now(); now.Sub(c.armed) > c.idle/10 {
		c.armed = now
		c.rc.SetWriteDeadline(now.Add(c.idle))
	}
	if _, err := c.w.Write(b); err != nil {
		return err
	}
	if c.flush {
		return c.rc.Flush()
	}
	return nil
}

// debugHeader tells how the request was routed.
func (x *exchange) debugHeader(h http.Header) {
	d := &x.ticket.Decision
	h["X-Kvca-Node"] = []string{x.cfg.Node}
	h["X-Kvca-Backend"] = []string{d.Backend}
	h["X-Kvca-Reason"] = []string{string(d.Reason)}
	h["X-Kvca-Matched-Blocks"] = []string{strconv.Itoa(d.MatchedBlocks)}
	h["X-Kvca-Chain-Blocks"] = []string{strconv.Itoa(d.ChainBlocks)}
	if tokens, ok := x.ticket.Predicted(); ok {
		h["X-Kvca-Predicted-Tokens"] = []string{strconv.FormatInt(tokens, 10)}
	}
	if d.Index != "" {
		h["X-Kvca-Index"] = []string{d.Index}
	}
	if d.Fallback != "" {
		h["X-Kvca-Fallback"] = []string{d.Fallback}
	}
}
