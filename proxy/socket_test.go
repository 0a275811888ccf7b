package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvca/proxy/backend"
	"kvca/router"
)

const handshake = "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// frame is an unmasked text frame of up to 125 bytes.
func frame(text string) string { return "\x81" + string(rune(len(text))) + text }

// dial asks the gateway for a WebSocket. What is sent before the answer is in early.
func (g *rig) dial(target, header, early string) (*net.TCPConn, *bufio.Reader, *http.Response) {
	g.Helper()
	conn := g.knock(target, header, early)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		g.Fatal(err)
	}
	return conn, r, resp
}

// knock asks and does not wait for the answer.
func (g *rig) knock(target, header, early string) *net.TCPConn {
	g.Helper()
	conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second)) // a test that hangs
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n%s%s\r\n%s", target, handshake, header, early)
	return conn.(*net.TCPConn)
}

// places are those that are taken among the WebSockets.
func (g *rig) places() int {
	s := &g.proxy.sockets
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// accepted is one WebSocket as an engine sees it.
type accepted struct {
	*net.TCPConn
	in      *bufio.Reader
	request *http.Request
}

// socketEngine answers 101 and hands the connection to talk.
func socketEngine(talk func(accepted)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: realtime\r\n\r\n")
		talk(accepted{conn.(*net.TCPConn), rw.Reader, r})
	}
}

// echo sends back what comes until the other side ends.
func echo(a accepted) { io.Copy(a, a.in) }

func TestAWebSocketPassesAndIsCountedForItsLife(t *testing.T) {
	g := newRig(t, 2, func(c *Config, _ *router.Config, _ *poolConfig) { c.Aliases = map[string]string{"voice": "m"} })
	var seen atomic.Pointer[http.Request]
	for _, e := range g.engines {
		e.answer(socketEngine(func(a accepted) { seen.Store(a.request); echo(a) }))
	}
	conn, r, resp := g.dial("/v1/realtime?a=%2F&model=voice&b=", "Origin: https://app.example\r\nSec-WebSocket-Protocol: realtime, openai-insecure-api-key.k\r\n", frame("early"))
	if resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") == "" || resp.Header.Get("Sec-WebSocket-Protocol") != "realtime" ||
		resp.Header.Get("X-Request-Id") == "" || !strings.EqualFold(resp.Header.Get("Upgrade"), "websocket") {
		t.Fatalf("answer %d %v", resp.StatusCode, resp.Header)
	}
	g.await("the engine has told", func() bool { return seen.Load() != nil }) // it answers first
	got := seen.Load()
	if got.RequestURI != "/v1/realtime?a=%2F&model=m&b=" || got.Header.Get("Origin") != "https://app.example" || !strings.Contains(got.Header.Get("Sec-WebSocket-Protocol"), "openai-insecure-api-key.k") {
		t.Errorf("the engine was asked for %s with %v", got.RequestURI, got.Header)
	}
	io.WriteString(conn, frame("hello"))
	want := frame("early") + frame("hello")
	back := make([]byte, len(want))
	if _, err := io.ReadFull(r, back); err != nil || string(back) != want {
		t.Fatalf("%q came back, %v", back, err)
	}
	slot := g.facts(resp.Header.Get("X-KVCA-Backend")).Slot
	if load := g.ledger.Load(slot); load.Active != 1 || load.Novel != 0 {
		t.Errorf("an open WebSocket is counted as %+v", load)
	}
	if !strings.Contains(g.metrics(), "kvca_websockets 1") {
		t.Error("the metrics do not know of it")
	}
	conn.Close()
	g.await("it has ended", func() bool { return g.ledger.Load(slot).Active == 0 })
	if want := `kvca_requests_total{code="101",endpoint="/v1/realtime",model="m"} 1`; !strings.Contains(g.metrics(), want) {
		t.Errorf("the metrics lack %s", want)
	}
}

func TestTheEndOfEitherHalfIsPassedOn(t *testing.T) {
	g := newRig(t, 1)
	g.engines[0].answer(socketEngine(func(a accepted) {
		text, _ := io.ReadAll(a.in) // until the client has ended its half
		io.WriteString(a, "got "+string(text))
	}))
	conn, r, _ := g.dial("/v1/realtime", "", "")
	io.WriteString(conn, "all")
	conn.CloseWrite()
	if text, err := io.ReadAll(r); err != nil || string(text) != "got all" {
		t.Errorf("%q, %v", text, err)
	}
	g.engines[0].answer(socketEngine(func(a accepted) {
		io.WriteString(a, "bye")
		a.CloseWrite()
		if text, _ := io.ReadAll(a.in); string(text) != "bye too" {
			t.Errorf("after its end the engine got %q", text)
		}
	}))
	conn, r, _ = g.dial("/v1/realtime?model=m", "", "")
	if text, err := io.ReadAll(r); err != nil || string(text) != "bye" {
		t.Errorf("%q, %v", text, err)
	}
	io.WriteString(conn, "bye too")
	conn.CloseWrite()
}

func TestAnEnginesRefusalOfAWebSocketPasses(t *testing.T) {
	g := newRig(t, 2)
	for _, e := range g.engines {
		e.answer(status(403))
	}
	_, _, resp := g.dial("/v1/realtime?model=m", "", "")
	if text := read(t, resp); resp.StatusCode != 403 || !strings.Contains(text, "engine says 403") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if n := g.engines[0].served.Load() + g.engines[1].served.Load(); n != 1 {
		t.Errorf("%d engines were asked", n)
	}
}

func TestAWebSocketMovesOnBeforeItIsOpen(t *testing.T) {
	for name, fault := range map[string]http.HandlerFunc{"503": status(503), "closed": hangUp} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, 3)
			for _, e := range g.engines {
				e.answer(fault)
			}
			g.engines[1].answer(socketEngine(echo))
			for range 10 {
				conn, _, resp := g.dial("/v1/realtime?model=m", "", "")
				if resp.StatusCode != 101 || resp.Header.Get("X-KVCA-Backend") != "e1" {
					t.Fatalf("%d from %s", resp.StatusCode, resp.Header.Get("X-KVCA-Backend"))
				}
				conn.Close()
			}
		})
	}
}

func TestAClientThatLeavesBeforeItsWebSocketIsOpen(t *testing.T) {
	g := newRig(t, 1)
	reached, told := make(chan struct{}), make(chan struct{})
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
		close(told)
	})
	conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /v1/realtime HTTP/1.1\r\nHost: x\r\n%s\r\n", handshake)
	<-reached
	conn.Close()
	<-told
}

// A backend that takes the handshake and never answers holds no place for ever, and
// counts as failed.
func TestAWebSocketThatIsNeverAnsweredIsGivenUp(t *testing.T) {
	g := newRig(t, 1, func(_ *Config, _ *router.Config, p *poolConfig) { p.UpgradeTimeout = 50 * time.Millisecond })
	told := make(chan struct{})
	g.engines[0].answer(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(told)
	})
	if _, _, resp := g.dial("/v1/realtime", "", ""); resp.StatusCode != 504 {
		t.Errorf("%d, want 504", resp.StatusCode)
	}
	<-told
	g.await("the place is back", func() bool { return g.places() == 0 })

	g.engines[0].answer(socketEngine(echo))
	conn, in, resp := g.dial("/v1/realtime", "", "")
	if resp.StatusCode != 101 {
		t.Fatalf("then %d, want 101", resp.StatusCode)
	}
	time.Sleep(100 * time.Millisecond) // longer than the wait: it is for the answer alone
	io.WriteString(conn, frame("hello"))
	got := make([]byte, len(frame("hello")))
	if _, err := io.ReadFull(in, got); err != nil || string(got) != frame("hello") {
		t.Errorf("%q came back, %v", got, err)
	}
}

func TestAQuietWebSocketIsCut(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.SocketIdle = 50 * time.Millisecond })
	g.engines[0].answer(socketEngine(echo))
	_, r, _ := g.dial("/v1/realtime", "", "")
	if _, err := r.ReadByte(); err == nil {
		t.Error("a byte came out of nothing")
	}
}

func TestWebSocketsAreCutTogether(t *testing.T) {
	g := newRig(t, 1)
	g.engines[0].answer(socketEngine(echo))
	var open []*bufio.Reader
	for range 3 {
		_, r, _ := g.dial("/v1/realtime", "", "")
		open = append(open, r)
	}
	g.proxy.CutSockets()
	for _, r := range open {
		if _, err := r.ReadByte(); err == nil {
			t.Error("a byte came out of nothing")
		}
	}
	g.await("their handlers have returned", func() bool { return g.proxy.InFlight() == 0 })
	_, _, resp := g.dial("/v1/realtime", "", "")
	if code := codeOf(t, read(t, resp)); resp.StatusCode != 503 || code != "gateway_busy" {
		t.Errorf("opened after that: %d %s", resp.StatusCode, code)
	}
}

func TestWebSocketsHaveABound(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.MaxSockets = 1 })
	g.engines[0].answer(socketEngine(echo))
	first, _, resp := g.dial("/v1/realtime", "", "")
	if resp.StatusCode != 101 {
		t.Fatal(resp.StatusCode)
	}
	_, _, resp = g.dial("/v1/realtime", "", "")
	if code := codeOf(t, read(t, resp)); resp.StatusCode != 503 || code != "gateway_busy" {
		t.Errorf("%d %s", resp.StatusCode, code)
	}
	first.Close()
	g.await("there is room", func() bool { return g.proxy.InFlight() == 0 })
	if _, _, resp = g.dial("/v1/realtime", "", ""); resp.StatusCode != 101 {
		t.Errorf("with room again: %d", resp.StatusCode)
	}
}

// Opening one takes as long as the backend likes: those on their way count as well.
func TestWebSocketsThatAreBeingOpenedAreWithinTheBound(t *testing.T) {
	const most, clients = 3, 20
	g := newRig(t, 2, func(c *Config, _ *router.Config, _ *poolConfig) { c.MaxSockets = most })
	accept := make(chan struct{})
	for _, e := range g.engines {
		open := socketEngine(echo)
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-accept:
				open(w, r)
			case <-r.Context().Done():
			}
		})
	}
	answers := make(chan *http.Response, clients)
	for range clients {
		conn := g.knock("/v1/realtime", "", "")
		go func() {
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Error(err)
			}
			answers <- resp
		}()
	}
	g.await("the others are refused", func() bool { return len(answers) >= clients-most })
	if n := g.engines[0].served.Load() + g.engines[1].served.Load(); n > most || g.places() != most {
		t.Errorf("backends were asked for %d, %d places are taken: want at most %d", n, g.places(), most)
	}
	close(accept)
	got := make(map[int]int)
	for range clients {
		resp := <-answers
		if resp == nil {
			t.FailNow()
		}
		if got[resp.StatusCode]++; resp.StatusCode != 101 {
			if code := codeOf(t, read(t, resp)); code != "gateway_busy" || resp.Header.Get("Retry-After") == "" {
				t.Errorf("refused by %s, %v", code, resp.Header)
			}
		}
	}
	if got[101] != most || got[503] != clients-most {
		t.Errorf("answers by status: %v", got)
	}
}

func TestAWebSocketThatDoesNotOpenGivesItsPlaceBack(t *testing.T) {
	g := newRig(t, 2, func(c *Config, _ *router.Config, _ *poolConfig) { c.MaxSockets = 1 })
	over := make(chan struct{})
	defer close(over)
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		status int
	}{
		{"refused", status(403), 403},
		{"refused by all", status(503), 503},
		{"cut off", hangUp, 502},
		{"another protocol", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
			conn.Close()
		}, 502},
		{"a refusal without end", func(w http.ResponseWriter, r *http.Request) { // it is told, and is no WebSocket
			w.WriteHeader(http.StatusForbidden)
			http.NewResponseController(w).Flush()
			io.WriteString(w, "no, and that is why: ")
			http.NewResponseController(w).Flush()
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}, 403},
	} {
		for _, e := range g.engines {
			e.answer(c.answer)
		}
		if conn, _, resp := g.dial("/v1/realtime", "", ""); resp.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", c.name, resp.StatusCode, c.status)
		} else {
			g.await("the place is back: "+c.name, func() bool { return g.places() == 0 })
			conn.Close()
		}
	}
	reached := make(chan struct{})
	for _, e := range g.engines {
		e.answer(func(_ http.ResponseWriter, r *http.Request) {
			reached <- struct{}{}
			<-r.Context().Done()
		})
	}
	conn := g.knock("/v1/realtime", "", "")
	<-reached
	if n := g.places(); n != 1 {
		t.Errorf("%d places are taken while one is opened", n)
	}
	conn.Close()
	g.await("the place is back: its client has left", func() bool { return g.places() == 0 })
}

// What a client sends waits in the gateway while its backend takes none of it: one buffer
// of it, and no longer than a client may keep an answer waiting.
func TestABackendThatReadsNothingOfAWebSocketIsCut(t *testing.T) {
	const most = 256 << 20 // far more than the buffers of all connections on the way
	for _, c := range []struct {
		name                 string
		tls, talks, abandons bool
	}{
		{name: "its client goes on"},
		{name: "its client leaves", abandons: true},
		{name: "it talks itself", talks: true},
		{name: "over TLS", tls: true},
		{name: "over TLS, its client leaves", tls: true, abandons: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, 0, with(func(c *Config) { c.WriteIdle, c.SocketIdle = 200*time.Millisecond, time.Hour }))
			over := make(chan struct{})
			defer close(over)
			g.addSilent(c.tls, c.talks, over)
			conn, _, resp := g.dial("/v1/realtime", "", "")
			if resp.StatusCode != 101 {
				t.Fatal(resp.StatusCode)
			}
			sent, chunk := 0, make([]byte, 64<<10)
			for sent < most {
				if c.abandons {
					conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
				}
				n, err := conn.Write(chunk)
				if sent += n; err != nil {
					break
				}
			}
			if c.abandons {
				conn.Close()
			}
			if sent >= most {
				t.Errorf("%d bytes were taken that nobody reads", sent)
			}
			g.await("the gateway is rid of it", func() bool { return g.proxy.InFlight() == 0 && g.places() == 0 })
		})
	}
}

// addSilent adds an engine that accepts WebSockets and reads nothing of them until over
// is closed.
func (g *rig) addSilent(overTLS, talks bool, over <-chan struct{}) {
	e := &testEngine{id: "e0", model: "m"}
	e.answer(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if talks {
					io.WriteString(conn, ".")
				}
			}
		}
	})
	if e.Server = httptest.NewUnstartedServer(e); overTLS {
		e.StartTLS()
	} else {
		e.Start()
	}
	g.Cleanup(e.Close)
	if err := g.pool.Add(backend.Config{ID: e.id, URL: e.URL, InsecureSkipVerify: overTLS}); err != nil {
		g.Fatal(err)
	}
	g.engines = append(g.engines, e)
	g.waitReady()
}

func TestWhatIsNoWebSocketIsToldSo(t *testing.T) {
	g := newRig(t, 1)
	resp := mustGet(t, g.client.URL+"/v1/realtime?model=m")
	if code := codeOf(t, read(t, resp)); resp.StatusCode != 426 || code != "upgrade_required" || resp.Header.Get("Upgrade") != "websocket" {
		t.Errorf("%d %s %v", resp.StatusCode, code, resp.Header)
	}
	_, _, resp = g.dial("/v1/realtime?model=nope", "", "")
	if code := codeOf(t, read(t, resp)); resp.StatusCode != 404 || code != "model_not_found" {
		t.Errorf("%d %s", resp.StatusCode, code)
	}
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		conn.Close()
	})
	_, _, resp = g.dial("/v1/realtime", "", "")
	if code := codeOf(t, read(t, resp)); resp.StatusCode != 502 || code != "backend_failed" {
		t.Errorf("another protocol: %d %s", resp.StatusCode, code)
	}
	// Only what asks for a WebSocket may get one.
	if code := codeOf(t, g.expect(502, "/v1/chat/completions", chat("hi"), "Connection", "Upgrade", "Upgrade", "websocket")); code != "backend_failed" {
		t.Errorf("code %s", code)
	}
}

func TestAKeyAmongSubprotocolsIsLifted(t *testing.T) {
	h := http.Header{"Sec-Websocket-Protocol": {"realtime, openai-insecure-api-key.kvca-1", "openai-beta.realtime-v1"}}
	liftKey(h)
	if h.Get("Authorization") != "Bearer kvca-1" || h.Get("Sec-Websocket-Protocol") != "realtime, openai-beta.realtime-v1" {
		t.Errorf("%v", h)
	}
	h = http.Header{"Sec-Websocket-Protocol": {"realtime"}}
	if liftKey(h); len(h) != 1 || h.Get("Sec-Websocket-Protocol") != "realtime" {
		t.Errorf("%v", h)
	}
}
