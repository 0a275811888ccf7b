package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvca/proxy/backend"
	"kvca/router"
	"kvca/state/cbr"
)

// closeGrace is how long a WebSocket may live on once one side has ended its half.
const closeGrace = 10 * time.Second

// identifySocket names a request for a WebSocket by its query: there is no body, and
// what is said in the socket is nobody's business but the engine's.
func (x *exchange) identifySocket() error {
	if x.attempts == 0 && !wantsSocket(x.r) { // what asks for it is gone once it was sent
		x.w.Header()["Upgrade"] = []string{"websocket"}
		return &apiError{status: http.StatusUpgradeRequired, code: "upgrade_required", message: "The path " + x.endpoint.path + " is for WebSockets: connect by HTTP/1.1 with Upgrade: websocket."}
	}
	x.rewritten = ""
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return badRequest("invalid_query", "The query can't be read without doubt: "+err.Error()+".", "")
	}
	names := query["model"]
	if len(names) > 1 {
		return badRequest("ambiguous_model", "The address names its model more than once: send one \"model\".", "model")
	}
	name := strings.Join(names, "")
	if name == "" {
		return x.identifyOnly()
	}
	model, _, err := x.resolveModel(name)
	if err != nil {
		return err
	}
	x.name = cbr.Request{Model: model, ClientModel: name}
	x.members, _ = x.p.pool.Model(model)
	x.want = router.Request{Model: model}
	if name != model {
		x.rewritten = x.r.URL.EscapedPath() + "?" + withModel(x.r.URL.RawQuery, model)
	}
	return nil
}

// wantsSocket is whether the request asks for a WebSocket in the way of HTTP/1.1.
func wantsSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && hasToken(r.Header["Connection"], "upgrade")
}

func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for word := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(word), token) {
				return true
			}
		}
	}
	return false
}

// withModel is a query whose model is another one; the rest of it stays as it is
// spelled.
func withModel(query, model string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		key, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(key); err == nil && plain == "model" {
			pairs[i] = "model=" + url.QueryEscape(model)
		}
	}
	return strings.Join(pairs, "&")
}

// send makes one attempt at a backend.
func (x *exchange) send(ctx context.Context, b *backend.Backend) (*http.Response, error) {
	target := x.rewritten
	if target == "" {
		target = x.target()
	}
	if x.endpoint.socket {
		return b.Upgrade(ctx, target, x.r.Header)
	}
	return b.Do(ctx, x.r.Method, target, x.r.Header, x.body)
}

// keyProtocol is how browsers, which can't set headers of a WebSocket, send a key: as
// the end of one of the subprotocols that they offer.
const keyProtocol = "openai-insecure-api-key."

// liftKey takes a key out of the offered subprotocols, to where keys are looked for.
func liftKey(h http.Header) {
	const offers = "Sec-Websocket-Protocol"
	var left []string
	var keys []string
	for _, line := range h[offers] {
		for word := range strings.SplitSeq(line, ",") {
			word = strings.TrimSpace(word)
			if found, ok := strings.CutPrefix(word, keyProtocol); ok {
				keys = append(keys, found)
			} else if word != "" {
				left = append(left, word)
			}
		}
	}
	if len(keys) == 0 {
		return
	}
	if delete(h, offers); len(left) > 0 {
		h[offers] = []string{strings.Join(left, ", ")}
	}
	if h["Authorization"] == nil {
		h["Authorization"] = []string{"Bearer " + keys[0]}
	}
	h["Api-Key"] = append(h["Api-Key"], keys...) // keys that differ are for Find to refuse
}

// socket is an open WebSocket: bytes pass between its two ends, and nobody looks at
// them. Two goroutines carry it; the exchange waits for both.
type socket struct {
	client  net.Conn
	backend io.ReadWriteCloser
	moved   atomic.Int64 // when bytes last moved, Unix nanoseconds
	limit   atomic.Int64 // for how long none may move, in nanoseconds
	closing sync.Once
	timer   *time.Timer
}

// takePlace takes the request's place among the WebSockets before it waits for its turn
// and before a backend is asked: those that are opened at the same time are within the
// bound too, and none waits for what it can't have.
func (x *exchange) takePlace() error {
	if !x.endpoint.socket {
		return nil
	}
	if x.place = x.p.sockets.take(x.cfg.MaxSockets); !x.place {
		return unavailable("gateway_busy", "The gateway has as many WebSockets open as it may. Try again shortly.")
	}
	return nil
}

// givePlace gives it back, once there is no WebSocket, or none any more.
func (x *exchange) givePlace() {
	if x.place {
		x.place = false
		x.p.sockets.give()
	}
}

// sockets are those that are open.
type sockets struct {
	mu    sync.Mutex
	taken int // places, of open ones and of those that are being opened
	open  map[*socket]struct{}
	over  bool // no more are opened
}

// take takes a place, or returns false where most are taken.
func (s *sockets) take(most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.taken >= most {
		return false
	}
	s.taken++
	return true
}

func (s *sockets) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
}

// enter has a socket cut with the others.
func (s *sockets) enter(one *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[*socket]struct{})
	}
	if s.open[one] = struct{}{}; s.over {
		one.cut()
	}
}

func (s *sockets) leave(one *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, one)
}

// CutSockets ends every WebSocket, for good. A server that shuts down knows nothing
// of them: whoever drains it calls this once their time is over, and then waits for
// their handlers.
func (p *Proxy) CutSockets() {
	p.sockets.mu.Lock()
	defer p.sockets.mu.Unlock()
	p.sockets.over = true
	for s := range p.sockets.open {
		s.cut()
	}
}

// tunnel makes the client's connection and the backend's one, until either ends. The
// backend has answered 101.
func (x *exchange) tunnel(resp *http.Response) error {
	end, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || !strings.EqualFold(resp.Header.Get("Upgrade"), "websocket") {
		resp.Body.Close()
		x.report(backend.BrokenConnection)
		return x.upstreamError(&backend.Error{Backend: x.ticket.Backend.ID, Failure: backend.BrokenConnection, Err: errors.New("it switched to a protocol that nobody asked for")})
	}
	defer end.Close()
	x.p.metrics.sockets.Inc()
	defer x.p.metrics.sockets.Dec()
	x.ticket.Begin()
	x.report(backend.NoFailure)
	x.firstByte = time.Since(x.began)
	x.tellModel()
	x.copyHeader(resp.Header)
	head := x.w.Header()
	conn, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return &apiError{status: http.StatusInternalServerError, code: "internal_error", message: "The connection can't be made a WebSocket."}
	}
	x.status, x.started = http.StatusSwitchingProtocols, true
	head["Connection"], head["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	early := make([]byte, buffered.Reader.Buffered())
	_, _ = io.ReadFull(buffered.Reader, early) // they are there
	s := newSocket(conn, &impatient{ReadWriteCloser: end, idle: x.cfg.WriteIdle}, x.cfg.SocketIdle)
	defer s.leave()
	x.p.sockets.enter(s)
	defer x.p.sockets.leave(s)
	if s.greet(head, early, x.cfg.WriteIdle) {
		s.run(x)
	}
	return nil
}

func newSocket(client net.Conn, backend io.ReadWriteCloser, idle time.Duration) *socket {
	s := &socket{client: client, backend: backend}
	s.limit.Store(int64(idle))
	s.moved.Store(time.Now().UnixNano())
	s.timer = time.AfterFunc(time.Hour, s.check) // which looks at the timer: only now is it there
	s.timer.Reset(idle)
	return s
}

// leave closes what is open. The exchange ends with it.
func (s *socket) leave() {
	s.timer.Stop()
	s.cut()
}

// check cuts a socket in which nothing has moved for too long.
func (s *socket) check() {
	quiet := time.Duration(time.Now().UnixNano() - s.moved.Load())
	if left := time.Duration(s.limit.Load()) - quiet; left > 0 {
		s.timer.Reset(left)
		return
	}
	s.cut()
}

// cut closes both ends, which ends both goroutines.
func (s *socket) cut() {
	s.closing.Do(func() {
		s.client.Close()
		s.backend.Close()
	})
}

// greet sends the answer's header to the client, and to the backend what the client
// has sent before it came.
func (s *socket) greet(head http.Header, early []byte, limit time.Duration) bool {
	s.client.SetWriteDeadline(time.Now().Add(limit))
	var text strings.Builder
	text.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = head.Write(&text) // a builder does not fail
	text.WriteString("\r\n")
	if _, err := io.WriteString(s.client, text.String()); err != nil {
		return false
	}
	if len(early) == 0 {
		return true
	}
	_, err := s.backend.Write(early)
	return err == nil
}

// run carries bytes both ways until both sides have ended.
func (s *socket) run(x *exchange) {
	var other sync.WaitGroup
	other.Go(func() { s.carry(&timedWriter{s.client, x.cfg.WriteIdle, time.Time{}}, s.backend, x.p) })
	s.carry(s.backend, s.client, x.p)
	other.Wait()
}

// carry carries one direction. The end of a side is passed on as such; then the other
// one has a little time to end too.
func (s *socket) carry(to io.Writer, from io.Reader, p *Proxy) {
	buf := p.chunks.Get().(*[]byte)
	defer p.chunks.Put(buf)
	for {
		n, err := from.Read(*buf)
		if n > 0 {
			s.moved.Store(time.Now().UnixNano())
			if _, failed := to.Write((*buf)[:n]); failed != nil {
				s.cut()
				return
			}
		}
		if err == nil {
			continue
		}
		half, ok := to.(interface{ CloseWrite() error })
		if err != io.EOF || !ok || half.CloseWrite() != nil {
			s.cut()
			return
		}
		s.limit.Store(int64(closeGrace))
		s.moved.Store(time.Now().UnixNano())
		s.timer.Reset(closeGrace)
		return
	}
}

// timedWriter cuts off a client that takes nothing for a while.
type timedWriter struct {
	net.Conn
	idle  time.Duration
	armed time.Time
}

func (w *timedWriter) Write(b []byte) (int, error) {
	if now := time.Now(); now.Sub(w.armed) > w.idle/10 {
		w.armed = now
		w.SetWriteDeadline(now.Add(w.idle))
	}
	return w.Conn.Write(b)
}

// CloseWrite ends the gateway's half of the client's connection.
func (w *timedWriter) CloseWrite() error {
	if half, ok := w.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// impatient cuts off a backend that takes nothing for a while: a client that has left
// is not noticed while what it sent waits.
type impatient struct {
	io.ReadWriteCloser
	idle time.Duration
}

func (b *impatient) Write(p []byte) (int, error) {
	late := time.AfterFunc(b.idle, func() { b.Close() })
	defer late.Stop()
	return b.ReadWriteCloser.Write(p)
}

// CloseWrite ends this side's half, where the connection can.
func (b *impatient) CloseWrite() error {
	if half, ok := b.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return b.Close()
}
