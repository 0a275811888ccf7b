package backend

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kvca/router"
	"kvca/state"
	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSlots records what the pool tells the router.
type fakeSlots struct {
	mu      sync.Mutex
	next    state.Slot
	removed []string
	voids   map[string]int
	caches  map[string][2]int
	active  map[string]int64
}

func newFakeSlots() *fakeSlots {
	return &fakeSlots{voids: map[string]int{}, caches: map[string][2]int{}, active: map[string]int64{}}
}

func (s *fakeSlots) Add(id string) (*router.Backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &router.Backend{ID: id, Slot: s.next}
	s.next++
	b.SetStanding(router.Starting)
	b.SetSpeed(1)
	return b, nil
}

func (s *fakeSlots) Remove(b *router.Backend) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = append(s.removed, b.ID)
}

func (s *fakeSlots) Void(b *router.Backend) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.voids[b.ID]++
}

func (s *fakeSlots) SetCache(b *router.Backend, tokens, blockTokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caches[b.ID] = [2]int{tokens, blockTokens}
}

func (s *fakeSlots) Active(b *router.Backend) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[b.ID]
}

func (s *fakeSlots) setActive(id string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active[id] = n
}

func (s *fakeSlots) voided(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.voids[id]
}

func (s *fakeSlots) cache(id string) [2]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caches[id]
}

// network is TCP without sockets: addresses that nobody listens on refuse.
type network struct {
	mu    sync.Mutex
	doors map[string]*door
	dials map[string]int
	black map[string]bool // addresses that never answer
}

func newNetwork() *network {
	return &network{doors: map[string]*door{}, dials: map[string]int{}, black: map[string]bool{}}
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	d, black := n.doors[address], n.black[address]
	n.dials[address]++
	n.mu.Unlock()
	if black {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	}
	if d == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	select {
	case d.conns <- far:
		return near, nil
	case <-d.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *network) listen(address string) *door {
	d := &door{network: n, address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.doors[address] = d
	return d
}

func (n *network) dialled(address string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[address]
}

// door is one address's listener.
type door struct {
	network *network
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	d.once.Do(func() {
		d.network.mu.Lock()
		delete(d.network.doors, d.address)
		d.network.mu.Unlock()
		close(d.closed)
	})
	return nil
}

func (d *door) Addr() net.Addr { return &net.TCPAddr{} }

// engine is an inference server whose answers a test sets.
type engine struct {
	id, address string
	network     *network

	mu      sync.Mutex
	health  int // status of /health
	models  []string
	listing string // of /v1/models, in place of models
	refusal string // body of a 404 to everything else
	metrics string // empty: 404
	status  int    // of everything else
	hang    bool   // /health never answers
	hits    map[string]int
	server  *http.Server
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.hits[r.URL.Path]++
	health, models, metrics, status, hang := e.health, e.models, e.metrics, e.status, e.hang
	listing, refusal := e.listing, e.refusal
	e.mu.Unlock()
	switch r.URL.Path {
	case "/health":
		if hang {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(health)
	case "/v1/models":
		if listing != "" {
			_, _ = io.WriteString(w, listing)
			return
		}
		if models == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		cards := make([]string, 0, len(models))
		for _, m := range models {
			cards = append(cards, fmt.Sprintf(`{"id":%q,"object":"model","created":7,"owned_by":"vllm","root":"/m","parent":null,"max_model_len":2048}`, m))
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[`+strings.Join(cards, ",")+`]}`)
	case "/metrics":
		if metrics == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, metrics)
	default:
		_, _ = io.Copy(io.Discard, r.Body)
		if refusal != "" {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, refusal)
	}
}

func (e *engine) set(change func(e *engine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

func (e *engine) asked(path string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hits[path]
}

func (e *engine) start() {
	e.server = &http.Server{Handler: e, IdleTimeout: 5 * time.Second}
	listener := e.network.listen(e.address)
	go func() { _ = e.server.Serve(listener) }()
	synctest.Wait()
}

func (e *engine) kill() {
	_ = e.server.Close()
	synctest.Wait()
}

// fleet is a pool over engines that live in the test's bubble.
type fleet struct {
	*Pool
	t       *testing.T
	slots   *fakeSlots
	network *network
	engines map[string]*engine
	log     *strings.Builder
}

// inFleet runs a test in virtual time, with engines a, b, c, ... that serve "m".
func inFleet(t *testing.T, engines int, config PoolConfig, test func(t *testing.T, f *fleet)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) {
		f := &fleet{t: t, slots: newFakeSlots(), network: newNetwork(), engines: map[string]*engine{}, log: new(strings.Builder)}
		config.Dial = f.network.dial
		if config.Logger == nil {
			config.Logger = slog.New(slog.NewTextHandler(&lockedWriter{to: f.log}, nil))
		}
		pool, err := NewPool(config, f.slots)
		if err != nil {
			t.Fatal(err)
		}
		f.Pool = pool
		for i := range engines {
			f.addEngine(string(rune('a' + i)))
		}
		defer func() {
			for _, e := range f.engines {
				e.kill()
			}
			pool.Close()
			time.Sleep(time.Hour) // for peers that are slow on purpose
		}()
		if err := pool.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, f)
	})
}

type lockedWriter struct {
	mu sync.Mutex
	to *strings.Builder
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

func newEngine(n *network, id string) *engine {
	return &engine{id: id, address: id + ":80", network: n, health: 200, models: []string{"m"}, status: 200, hits: map[string]int{}}
}

func (f *fleet) addEngine(id string) *engine {
	f.t.Helper()
	e := newEngine(f.network, id)
	e.start()
	f.engines[id] = e
	f.add(Config{ID: id, URL: "http://" + e.address})
	return e
}

func (f *fleet) add(c Config) {
	f.t.Helper()
	if err := f.Add(c); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) backend(id string) *Backend {
	f.t.Helper()
	for _, facts := range f.All() {
		if facts.ID == id {
			return f.Of(facts)
		}
	}
	f.t.Fatalf("no backend %s", id)
	return nil
}

func (f *fleet) standing(id string) router.Standing { return f.backend(id).Facts().Standing() }

func (f *fleet) wantStanding(id string, want router.Standing) {
	f.t.Helper()
	synctest.Wait()
	if got := f.standing(id); got != want {
		f.t.Fatalf("standing of %s = %v, want %v", id, got, want)
	}
}

// post sends a chat request and reads the answer.
func post(ctx context.Context, b *Backend) (int, error) {
	resp, err := b.Do(ctx, http.MethodPost, "/v1/chat/completions", http.Header{}, []byte(`{"model":"m"}`))
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// request reads one request off a raw connection.
func request(r *bufio.Reader) (*http.Request, []byte, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(req.Body)
	return req, body, err
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
