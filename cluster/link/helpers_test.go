package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A hub is a network of pipes: what is written waits until it is read.
type hub struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener
}

func newHub() *hub { return &hub{listeners: map[string]*pipeListener{}} }

func (h *hub) listen(addr string) *pipeListener {
	l := &pipeListener{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[addr] = l
	return l
}

func (h *hub) dial(ctx context.Context, addr string) (net.Conn, error) {
	h.mu.Lock()
	l := h.listeners[addr]
	h.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeListener struct {
	addr  string
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: l.addr} }

// A recorder is a handler that writes down what it gets.
type recorder struct {
	check func(*Hello) error
	frame func(p *Peer, kind byte, body []byte)

	mu     sync.Mutex
	events []string
	peers  []*Peer // up, in order
	frames []string
}

func (r *recorder) note(format string, args ...any) {
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) Check(h *Hello) error {
	if r.check != nil {
		return r.check(h)
	}
	return nil
}

func (r *recorder) Up(p *Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers = append(r.peers, p)
	r.note("up %s %d", p.Name(), p.Boot())
}

func (r *recorder) Frame(p *Peer, kind byte, body []byte) {
	if r.frame != nil {
		r.frame(p, kind, body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = append(r.frames, fmt.Sprintf("%d %s", kind, body))
}

func (r *recorder) Down(p *Peer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := (*ending)(nil)
	errors.As(err, &e)
	for i, q := range r.peers {
		if q == p {
			r.peers = append(r.peers[:i:i], r.peers[i+1:]...)
		}
	}
	r.note("down %s %d %s", p.Name(), p.Boot(), e.reason)
}

func (r *recorder) seen() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.events, ", ")
}

func (r *recorder) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.frames...)
}

func (r *recorder) peer(t testing.TB) *Peer {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.peers) != 1 {
		t.Fatalf("%d links are up, not one", len(r.peers))
	}
	return r.peers[0]
}

// A node is Links with a recorder and a log that can be read.
type node struct {
	recorder
	*Links
	log lockedBuffer
	reg *prometheus.Registry
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) count(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.b.String(), what)
}

func hello(name string, boot uint64) Hello {
	return Hello{Cluster: "test", Node: name, Boot: boot, MinProtocol: 1, MaxProtocol: 2, BlockSize: 64}
}

// start runs a node of the hub, listening at its own name, until the test ends.
func (h *hub) start(t testing.TB, name string, change func(*Config, *node)) *node {
	t.Helper()
	n := &node{reg: prometheus.NewRegistry()}
	self := hello(name, 1)
	c := Config{
		Self: func() Hello { return self }, Listener: h.listen(name), Dial: h.dial, Handler: n,
		Logger: slog.New(slog.NewTextHandler(&n.log, nil)), Registerer: n.reg,
	}
	if change != nil {
		change(&c, n)
	}
	var err error
	if n.Links, err = New(c); err != nil {
		t.Fatal(err)
	}
	run(t, n.Links)
	return n
}

func run(t testing.TB, l *Links) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// A puppet is the other end of a link, moved by hand.
type puppet struct {
	t testing.TB
	net.Conn
	in frameReader
}

func newPuppet(t testing.TB, c net.Conn) *puppet {
	t.Cleanup(func() { c.Close() })
	return &puppet{t: t, Conn: c, in: frameReader{r: c, limit: MaxFrame}}
}

// dial connects with a node and goes through the handshake.
func (h *hub) puppet(t testing.TB, addr string, self Hello) *puppet {
	t.Helper()
	c, err := h.dial(context.Background(), addr)
	if err != nil {
		t.Fatal(err)
	}
	p := newPuppet(t, c)
	p.write(kindHello, string(self.append(nil)))
	p.expect(kindHello)
	if kind, body := p.next(); kind != kindAccept {
		t.Fatalf("refused: %q", body)
	}
	p.write(kindAccept, "")
	return p
}

// welcome takes a node's connection through the handshake.
func welcome(t testing.TB, l net.Listener, self Hello) *puppet {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p := newPuppet(t, c)
	p.expect(kindHello)
	p.write(kindHello, string(self.append(nil)))
	p.write(kindAccept, "")
	p.expect(kindAccept)
	return p
}

func (p *puppet) write(kind byte, body string) {
	p.t.Helper()
	if _, err := p.Write(appendFrame(nil, kind, len(body), []byte(body))); err != nil {
		p.t.Fatalf("puppet writes: %v", err)
	}
}

func (p *puppet) next() (byte, string) {
	p.t.Helper()
	kind, body, err := p.in.next()
	if err != nil {
		p.t.Fatalf("puppet reads: %v", err)
	}
	return kind, string(body)
}

func (p *puppet) expect(kind byte) string {
	p.t.Helper()
	got, body := p.next()
	if got != kind {
		p.t.Fatalf("kind %#x with %d bytes, want %#x", got, len(body), kind)
	}
	return body
}

// discard reads until the connection ends.
func (p *puppet) discard() { go io.Copy(io.Discard, p.Conn) }

// chatter keeps the lease and reads nothing.
func (p *puppet) chatter() {
	go func() {
		ping := appendFrame(nil, kindPong, 0)
		for {
			if _, err := p.Write(ping); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T, h *hub)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) { f(t, newHub()) })
}

func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func wantEvents(t *testing.T, r *recorder, want string) {
	t.Helper()
	if got := r.seen(); got != want {
		t.Errorf("events: %s\nwant:   %s", got, want)
	}
}
