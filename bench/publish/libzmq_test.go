package publish

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"kvca/bench/publish/libzmq"
	"kvca/proxy/engine/zmtp"
)

// subscribe is a SUB of the real library. Arguments: bind or connect, endpoint,
// PING interval in ms (0: none). It prints what it hears.
const subscribe = `
import sys, zmq
how, endpoint, ivl = sys.argv[1], sys.argv[2], int(sys.argv[3])
s = zmq.Context().socket(zmq.SUB)
if ivl:
    s.setsockopt(zmq.HEARTBEAT_IVL, ivl)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 10 * ivl)
s.setsockopt(zmq.SUBSCRIBE, b"kv")
(s.bind if how == "bind" else s.connect)(endpoint)
print(s.getsockopt_string(zmq.LAST_ENDPOINT))
while True:
    topic, number, payload = s.recv_multipart()
    print(topic.decode(), int.from_bytes(number, "big"), payload.decode())
`

// opened makes a publisher on real sockets.
func opened(t *testing.T, c Config) *Publisher {
	t.Helper()
	c.Topic = topic
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// awaitSubscriber waits for the library's subscription.
func awaitSubscriber(t *testing.T, p *Publisher) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); p.Subscribers() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("libzmq did not subscribe within 30 s")
		}
	}
}

func expectBatches(t *testing.T, s *libzmq.Script, first, end int) {
	t.Helper()
	for i := first; i < end; i++ {
		if got, want := s.Line(), fmt.Sprintf("%s %d %s", topic, i, payload(i)); got != want {
			t.Fatalf("libzmq heard %q: want %q", got, want)
		}
	}
}

func TestLibzmqHearsAPublisherThatBinds(t *testing.T) {
	for name, endpoint := range map[string]string{"tcp": "tcp://*:0", "ipc": "ipc://" + filepath.Join(t.TempDir(), "kv")} {
		t.Run(name, func(t *testing.T) {
			p := opened(t, Config{Endpoint: endpoint})
			s := libzmq.Start(t, subscribe, "connect", p.Endpoint(), "0")
			s.Line()
			awaitSubscriber(t, p)
			publish(p, 0, 100)
			expectBatches(t, s, 0, 100)
			p.Restart()
			awaitSubscriber(t, p)
			publish(p, 0, 5)
			expectBatches(t, s, 0, 5)
		})
	}
}

func TestLibzmqHearsAPublisherThatConnects(t *testing.T) {
	s := libzmq.Start(t, subscribe, "bind", "tcp://127.0.0.1:*", "0")
	p := opened(t, Config{Endpoint: s.Line()})
	awaitSubscriber(t, p)
	publish(p, 0, 100)
	expectBatches(t, s, 0, 100)
}

// counting counts the connections of a listener.
type counting struct {
	net.Listener
	accepted *atomic.Int32
}

func (l counting) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return nc, err
}

// A subscriber with heartbeats drops a publisher that doesn't answer its PINGs.
func TestLibzmqHasItsHeartbeatsAnswered(t *testing.T) {
	var accepted atomic.Int32
	p := opened(t, Config{
		Endpoint: "tcp://*:0",
		Listen: func(ctx context.Context, network, address string) (net.Listener, error) {
			l, err := zmtp.Listen(ctx, network, address)
			return counting{l, &accepted}, err
		},
	})
	s := libzmq.Start(t, subscribe, "connect", p.Endpoint(), "100")
	s.Line()
	awaitSubscriber(t, p)
	time.Sleep(1500 * time.Millisecond) // the library's clock is the real one
	publish(p, 0, 10)
	expectBatches(t, s, 0, 10)
	if n := accepted.Load(); n != 1 {
		t.Errorf("connected %d times: want once, which lasts", n)
	}
}

// askFromTwo is a DEALER of the real library that asks for a replay.
const askFromTwo = `
import sys, zmq
s = zmq.Context().socket(zmq.DEALER)
s.connect(sys.argv[1])
s.send_multipart([b"", (2).to_bytes(8, "big")])
while True:
    frames = s.recv_multipart()
    print(*[f.hex() for f in frames], sep=",")
`

func TestLibzmqGetsItsReplay(t *testing.T) {
	p := opened(t, Config{Endpoint: "tcp://*:0", Replay: "tcp://*:0"})
	publish(p, 0, 4)
	s := libzmq.Start(t, askFromTwo, p.ReplayEndpoint())
	for i := 2; i < 4; i++ {
		if got, want := s.Line(), fmt.Sprintf(",%x,%016x,%x", topic, i, payload(i)); got != want {
			t.Errorf("libzmq got %s: want %s", got, want)
		}
	}
	if got, want := s.Line(), ",,ffffffffffffffff,"; got != want {
		t.Errorf("libzmq got %s: want the end %s", got, want)
	}
}

func TestAddressInUseIsTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := New(Config{Endpoint: "tcp://*:0", Replay: "tcp://" + l.Addr().String()})
	if err == nil {
		p.Close()
		t.Fatal("it was made: want that the ROUTER's address is in use")
	}
}
