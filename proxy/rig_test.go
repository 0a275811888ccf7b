package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"kvca/proxy/backend"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a whole gateway on loopback in front of test engines. When its test
// ends it must be at rest: no load, no reservation, no tentative location, and
// nothing logged as an error.
type rig struct {
	*testing.T
	proxy    *Proxy
	pool     *backend.Pool
	router   *router.Router
	ledger   *ledger.Ledger
	blocks   *blockmap.Map
	registry *prometheus.Registry
	client   *httptest.Server
	admin    *httptest.Server
	engines  []*testEngine
	log      *syncBuffer
}

// testEngine is an engine whose answers a test decides.
type testEngine struct {
	*httptest.Server
	id     string
	model  string
	served atomic.Int64 // requests beyond probes
	serve  atomic.Pointer[http.HandlerFunc]
}

func (e *testEngine) answer(f http.HandlerFunc) { e.serve.Store(&f) }

func (e *testEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health":
	case "/v1/models":
		fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","created":1,"owned_by":"test"}]}`, e.model)
	case "/metrics":
		http.NotFound(w, r)
	default:
		e.served.Add(1)
		(*e.serve.Load())(w, r)
	}
}

// chatAnswer is what a test engine answers unless told otherwise.
func chatAnswer(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,"prompt_tokens_details":{"cached_tokens":60}}}`)
}

type rigOption func(*Config, *router.Config, *backend.PoolConfig)

func newRig(t *testing.T, engines int, options ...rigOption) *rig {
	t.Helper()
	g := &rig{T: t, log: new(syncBuffer), registry: prometheus.NewRegistry(), ledger: ledger.New()}
	log := slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg, rc := DefaultConfig(), router.DefaultConfig()
	pc := backend.PoolConfig{HealthInterval: 50 * time.Millisecond, SlowStart: -1, Logger: log, Registerer: g.registry}
	cfg.Logger, cfg.Registerer, rc.Registerer, cfg.DebugHeaders = log, g.registry, g.registry, true
	rc.Rand = seeded(t)
	for _, o := range options {
		o(&cfg, &rc, &pc)
	}
	var err error
	if g.blocks, err = blockmap.New(blockmap.Config{MaxBytes: 16 << 20, TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if g.router, err = router.New(rc, router.LocalLoads(g.ledger, "node"), g.blocks); err != nil {
		t.Fatal(err)
	}
	if g.pool, err = backend.NewPool(pc, g.router); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.pool.Close)
	if g.proxy, err = New(cfg, g.router, g.pool); err != nil {
		t.Fatal(err)
	}
	if err := g.proxy.RegisterState(g.registry, g.blocks, g.ledger); err != nil {
		t.Fatal(err)
	}
	g.client = start(t, g.proxy, log)
	g.admin = start(t, NewAdmin(AdminConfig{Proxy: g.proxy, Map: g.blocks, Ledger: g.ledger, Gatherer: g.registry}), log)
	for i := range engines {
		g.addEngine(fmt.Sprintf("e%d", i), "m")
	}
	g.waitReady()
	t.Cleanup(g.atRest)
	return g
}

func seeded(t *testing.T) func() uint64 {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 0))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}

func start(t *testing.T, h http.Handler, log *slog.Logger) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config = NewHTTPServer(h, log)
	s.Listener = Patient(s.Listener)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (g *rig) addEngine(id, model string) *testEngine {
	g.Helper()
	e := &testEngine{id: id, model: model}
	e.answer(chatAnswer)
	e.Server = httptest.NewServer(e)
	g.Cleanup(func() {
		e.CloseClientConnections()
		e.Close()
	})
	g.engines = append(g.engines, e)
	if err := g.pool.Add(backend.Config{ID: id, URL: e.URL}); err != nil {
		g.Fatal(err)
	}
	return e
}

func (g *rig) waitReady() {
	g.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := g.pool.WaitReady(ctx); err != nil {
		g.Fatal(err)
	}
	for _, e := range g.engines {
		g.await("engine "+e.id+" available", func() bool { return g.facts(e.id).Standing() == router.Available })
	}
}

func (g *rig) facts(id string) *router.Backend {
	for _, b := range g.pool.All() {
		if b.ID == id {
			return b
		}
	}
	g.Fatalf("no backend %s", id)
	return nil
}

// await waits for a condition that must come true by itself.
func (g *rig) await(what string, ok func() bool) {
	g.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			g.Fatalf("waited in vain: %s", what)
		}
	}
}

// atRest checks that nothing was leaked.
func (g *rig) atRest() {
	g.await("no request in flight", func() bool { return g.proxy.InFlight() == 0 })
	if held := g.ledger.Held(); held != 0 {
		g.Errorf("%d reservations leaked", held)
	}
	for _, b := range g.pool.All() {
		if load := g.ledger.Load(b.Slot); load != (ledger.Load{}) {
			g.Errorf("load %+v left on %s", load, b.ID)
		}
	}
	if n := g.blocks.Stats().Tentative; n != 0 {
		g.Errorf("%d tentative locations leaked", n)
	}
	if used := g.proxy.budget.used.Load(); used != 0 {
		g.Errorf("%d bytes of the body budget leaked", used)
	}
	if text := g.log.String(); strings.Contains(text, "level=ERROR") {
		g.Errorf("an error was logged:\n%s", text)
	}
}

func (g *rig) post(path, body string, header ...string) *http.Response {
	g.Helper()
	resp, err := g.try(path, body, header...)
	if err != nil {
		g.Fatalf("POST %s: %v", path, err)
	}
	return resp
}

func (g *rig) try(path, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodPost, g.client.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return g.client.Client().Do(req)
}

// expect posts and checks the status; it returns the body.
func (g *rig) expect(status int, path, body string, header ...string) string {
	g.Helper()
	resp := g.post(path, body, header...)
	text := read(g, resp)
	if resp.StatusCode != status {
		g.Fatalf("POST %s: status %d, want %d; body %s", path, resp.StatusCode, status, text)
	}
	return text
}

func read(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read answer: %v (after %q)", err, b)
	}
	return string(b)
}

// chat is a chat body with the given messages, roles in turn from user.
func chat(messages ...string) string {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	list := []message{}
	for i, text := range messages {
		list = append(list, message{[]string{"user", "assistant"}[i%2], text})
	}
	b, _ := json.Marshal(map[string]any{"model": "m", "messages": list})
	return string(b)
}

// long is a text of n bytes that no other seed gives.
func long(seed, n int) string {
	r := rand.New(rand.NewPCG(uint64(seed), 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz      "[r.IntN(32)]
	}
	return string(b)
}

// codeOf is the stable code of an error answer, in either API's shape.
func codeOf(t testing.TB, body string) string {
	t.Helper()
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Message == "" {
		t.Fatalf("not an error object: %s", body)
	}
	return e.Error.Code
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// hangUp closes the connection of a request without an answer.
func hangUp(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":{"message":"engine says %d","type":"x","param":null,"code":%d}}`, code, code)
	}
}

type (
	poolConfig = backend.PoolConfig
)

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}
