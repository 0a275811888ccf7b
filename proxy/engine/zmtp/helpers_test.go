package zmtp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"kvca/cluster/simnet"
	"kvca/state/virtualtime"
)

const port = 5557

// bubble runs a test in virtual time with two hosts, "us" and "engine".
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) {
		w := &world{t: t, net: simnet.New(1)}
		w.us, w.engine = w.net.Host("us"), w.net.Host("engine")
		t.Cleanup(w.net.Close)
		test(t, w)
	})
}

type world struct {
	t          *testing.T
	net        *simnet.Network
	us, engine *simnet.Host
}

// config is that of a SUB at us which connects to the engine.
func (w *world) config() Config {
	return Config{
		Endpoint: fmt.Sprintf("tcp://engine:%d", port),
		Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return w.us.Dial(ctx, addr)
		},
		Listen: func(context.Context, string, string) (net.Listener, error) {
			return w.us.Listen(port)
		},
	}
}

// listen opens the engine's port.
func (w *world) listen() net.Listener {
	w.t.Helper()
	l, err := w.engine.Listen(port)
	if err != nil {
		w.t.Fatalf("listen: %v", err)
	}
	return l
}

// serve lets the engine shake hands once and then say nothing; where that fails,
// our side does.
func (w *world) serve(socketType string) {
	l := w.listen()
	go func() {
		if nc, err := l.Accept(); err == nil {
			_, _ = Accept(w.t.Context(), nc, Config{Heartbeat: -1}, socketType)
		}
	}()
}

// accept takes the next connection as it is.
func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	nc, err := l.Accept()
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	return nc
}

// publisher takes the next connection as a PUB and reads its subscription.
func publisher(t *testing.T, l net.Listener) *Conn {
	t.Helper()
	c, err := Accept(t.Context(), accept(t, l), Config{Heartbeat: -1}, "PUB")
	if err != nil {
		t.Fatalf("accept a subscriber: %v", err)
	}
	subscribed(t, c, "")
	return c
}

func subscribed(t *testing.T, c *Conn, topic string) {
	t.Helper()
	frames, err := c.Receive()
	if err != nil || len(frames) != 1 || string(frames[0]) != "\x01"+topic {
		t.Fatalf("subscription: %q, %v: want topic %q", frames, err, topic)
	}
}

// raw is the greeting and READY of a peer of some type.
func raw(socketType string) []byte {
	return appendCommand(bytes.Clone(greeting[:]), "READY", ready(socketType))
}

// swallow reads what we send until the handshake and subscription are through.
func swallow(t *testing.T, nc net.Conn) {
	t.Helper()
	n := len(raw("SUB")) + 3
	if _, err := io.ReadFull(nc, make([]byte, n)); err != nil {
		t.Fatalf("read the handshake: %v", err)
	}
}

// recorder is a Handler that keeps what happened.
type recorder struct {
	mu      sync.Mutex
	events  []string
	at      []time.Time
	conns   []*Conn
	changed chan struct{}
	pause   time.Duration
}

func newRecorder() *recorder { return &recorder{changed: make(chan struct{}, 1)} }

func (r *recorder) add(c *Conn, format string, args ...any) {
	r.mu.Lock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
	r.at = append(r.at, time.Now())
	if c != nil {
		r.conns = append(r.conns, c)
	}
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *recorder) Connected(c *Conn) { r.add(c, "connected") }
func (r *recorder) Message(_ *Conn, frames [][]byte) {
	r.add(nil, "%q", frames)
	time.Sleep(r.pause)
}
func (r *recorder) Disconnected(_ *Conn, err error) { r.add(nil, "disconnected: %v", err) }
func (r *recorder) Failed(err error)                { r.add(nil, "failed: %v", err) }

func (r *recorder) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

// times says when each event came.
func (r *recorder) times() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time(nil), r.at...)
}

// wait returns event i as soon as there is one.
func (r *recorder) wait(t *testing.T, i int) string {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		if l := r.list(); len(l) > i {
			return l[i]
		}
		select {
		case <-r.changed:
		case <-timeout:
			t.Fatalf("event %d never came: have %q", i, r.list())
		}
	}
}

// subscribe runs Subscribe until the test's end, or until the func it returns is
// called, which returns its error.
func subscribe(t *testing.T, c Config, h Handler) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Subscribe(ctx, c, h) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Subscribe returned %v: want its context's error", err)
		}
	})
	return stop
}
