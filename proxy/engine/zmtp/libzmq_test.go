package zmtp

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvca/bench/publish/libzmq"
)

// publish is an engine's publisher. Arguments: bind or connect, endpoint, PING
// interval and timeout in ms (0: none). It is an XPUB, a PUB that can tell when it
// was subscribed to, and publishes as many numbered messages as each line of its
// input asks for.
const publish = `
import sys, zmq
how, endpoint, ivl, timeout = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
s = zmq.Context().socket(zmq.XPUB)
s.set_hwm(1000000)
s.setsockopt(zmq.IPV6, 1)
if ivl:
    s.setsockopt(zmq.HEARTBEAT_IVL, ivl)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, timeout)
(s.bind if how == "bind" else s.connect)(endpoint)
print(s.getsockopt_string(zmq.LAST_ENDPOINT))
print("subscribed", s.recv())
seq = 0
for line in sys.stdin:
    for _ in range(int(line)):
        s.send_multipart([b"kv-events", seq.to_bytes(8, "big"), b"x" * 512])
        seq += 1
`

const subscribedLine = `subscribed b'\x01kv'`

// counter is a Handler that expects publish's messages in order.
type counter struct {
	t                       *testing.T
	next                    atomic.Uint64 // the number expected
	connected, disconnected atomic.Int32
	changed                 chan struct{}
}

func newCounter(t *testing.T) *counter { return &counter{t: t, changed: make(chan struct{}, 1)} }

func (c *counter) note() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *counter) Connected(*Conn) {
	c.next.Store(0)
	c.connected.Add(1)
	c.note()
}

func (c *counter) Disconnected(*Conn, error) {
	c.disconnected.Add(1)
	c.note()
}

func (c *counter) Message(_ *Conn, frames [][]byte) {
	if len(frames) != 3 || string(frames[0]) != "kv-events" || len(frames[1]) != 8 || len(frames[2]) != 512 {
		c.t.Errorf("message %q: want topic, number and payload", frames)
		return
	}
	if got, want := binary.BigEndian.Uint64(frames[1]), c.next.Load(); got != want {
		c.t.Errorf("message %d: want %d", got, want)
	}
	c.next.Add(1)
	c.note()
}

func (c *counter) await(what string, reached func() bool) {
	c.t.Helper()
	timeout := time.After(30 * time.Second)
	for !reached() {
		select {
		case <-c.changed:
		case <-timeout:
			c.t.Fatalf("%s: not within 30 s; %d messages, connected %d times", what, c.next.Load(), c.connected.Load())
		}
	}
}

func (c *counter) awaitMessages(n uint64) {
	c.t.Helper()
	c.await(fmt.Sprintf("%d messages", n), func() bool { return c.next.Load() == n })
}

func libConfig(endpoint string) Config {
	return Config{Endpoint: endpoint, Subscribe: []string{"kv"}}
}

func expectLine(t *testing.T, s *libzmq.Script, want string) {
	t.Helper()
	if got := s.Line(); got != want {
		t.Fatalf("libzmq says %q: want %q", got, want)
	}
}

func TestLibzmqPublisherThatBindsIsHeard(t *testing.T) {
	endpoints := map[string]string{
		"tcp":  "tcp://127.0.0.1:*",
		"ipc":  "ipc://" + filepath.Join(t.TempDir(), "kv"),
		"ipv6": "tcp://[::1]:*",
	}
	for name, endpoint := range endpoints {
		t.Run(name, func(t *testing.T) {
			if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
				l.Close()
			} else if name == "ipv6" {
				t.Skipf("no IPv6 loopback: %v", err)
			}
			s, c := libzmq.Start(t, publish, "bind", endpoint, "0", "0"), newCounter(t)
			subscribe(t, libConfig(s.Line()), c)
			expectLine(t, s, subscribedLine)
			s.Say("1000")
			c.awaitMessages(1000)
		})
	}
}

// bound is a SUB that binds to a free port, and what to connect to.
func bound(t *testing.T, h Handler) (endpoint string) {
	t.Helper()
	c := libConfig("tcp://127.0.0.1:0")
	c.Bind = true
	address := make(chan string, 1)
	c.Listen = func(ctx context.Context, network, addr string) (net.Listener, error) {
		l, err := Listen(ctx, network, addr)
		if err == nil {
			address <- "tcp://" + l.Addr().String()
		}
		return l, err
	}
	subscribe(t, c, h)
	return <-address
}

func TestLibzmqPublisherThatConnectsIsHeard(t *testing.T) {
	c := newCounter(t)
	s := libzmq.Start(t, publish, "connect", bound(t, c), "0", "0")
	s.Line()
	expectLine(t, s, subscribedLine)
	s.Say("1000")
	c.awaitMessages(1000)
}

func TestLibzmqPublisherIsHeardAgainAfterItsRestart(t *testing.T) {
	s, c := libzmq.Start(t, publish, "bind", "tcp://127.0.0.1:*", "0", "0"), newCounter(t)
	endpoint := s.Line()
	subscribe(t, libConfig(endpoint), c)
	expectLine(t, s, subscribedLine)
	s.Say("10")
	c.awaitMessages(10)
	s.Stop()
	c.await("the loss", func() bool { return c.disconnected.Load() == 1 })
	s = libzmq.Start(t, publish, "bind", endpoint, "0", "0")
	s.Line()
	expectLine(t, s, subscribedLine)
	s.Say("20")
	c.awaitMessages(20)
}

// A publisher with heartbeats drops whoever doesn't answer its PINGs in 2 s.
func TestLibzmqHeartbeatsAreAnswered(t *testing.T) {
	s, c := libzmq.Start(t, publish, "bind", "tcp://127.0.0.1:*", "300", "2000"), newCounter(t)
	conf := libConfig(s.Line())
	conf.Heartbeat = 700 * time.Millisecond // ours, which libzmq has to answer within 2.1 s
	subscribe(t, conf, c)
	expectLine(t, s, subscribedLine)
	for i := range 3 {
		time.Sleep(time.Second) // real time: the clock that counts is the library's
		s.Say("1")
		c.awaitMessages(uint64(i + 1))
	}
	if c.disconnected.Load() != 0 {
		t.Errorf("disconnected %d times: want never", c.disconnected.Load())
	}
}

// A publisher that is stopped, as on a host that hangs, is noticed by our PINGs.
func TestLibzmqPublisherThatHangsIsDropped(t *testing.T) {
	s, c := libzmq.Start(t, publish, "bind", "tcp://127.0.0.1:*", "0", "0"), newCounter(t)
	conf := libConfig(s.Line())
	conf.Heartbeat = 100 * time.Millisecond
	subscribe(t, conf, c)
	expectLine(t, s, subscribedLine)
	time.Sleep(300 * time.Millisecond) // until it has answered one
	s.Pause()
	c.await("the loss", func() bool { return c.disconnected.Load() > 0 })
	s.Resume()
	c.await("the return", func() bool { return c.connected.Load() > 1 })
}

// replay is a ROUTER that answers as vLLM does, with as many batches as the first
// argument says.
const replay = `
import sys, zmq
s = zmq.Context().socket(zmq.ROUTER)
s.set_hwm(1000000)
s.bind("tcp://127.0.0.1:*")
print(s.getsockopt_string(zmq.LAST_ENDPOINT))
while True:
    client, empty, start = s.recv_multipart()
    for seq in range(int.from_bytes(start, "big"), int(sys.argv[1])):
        s.send_multipart([client, b"", b"kv-events", seq.to_bytes(8, "big"), b"x" * 512])
    s.send_multipart([client, b"", b"", (-1).to_bytes(8, "big", signed=True), b""])
`

func TestLibzmqRouterReplaysToOurDealer(t *testing.T) {
	const batches = 10000
	s := libzmq.Start(t, replay, fmt.Sprint(batches))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	d, err := Dial(ctx, libConfig(s.Line()), "DEALER")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, start := range []uint64{0, batches - 2, batches + 10} {
		if err := d.Send(nil, binary.BigEndian.AppendUint64(nil, start)); err != nil {
			t.Fatal(err)
		}
		for seq := start; seq < batches; seq++ {
			frames, err := d.Receive()
			if err != nil || len(frames) != 4 || binary.BigEndian.Uint64(frames[2]) != seq || len(frames[3]) != 512 {
				t.Fatalf("batch %d from %d: %q, %v", seq, start, frames, err)
			}
		}
		frames, err := d.Receive()
		if err != nil || len(frames) != 4 || binary.BigEndian.Uint64(frames[2]) != 1<<64-1 || len(frames[3]) != 0 {
			t.Fatalf("end from %d: %q, %v: want the marker", start, frames, err)
		}
	}
}

func TestLibzmqSocketOfAnotherTypeIsRefused(t *testing.T) {
	s := libzmq.Start(t, replay, "0")
	r := newRecorder()
	c := libConfig(s.Line())
	c.Failed = r.Failed
	subscribe(t, c, r)
	// libzmq refuses too: where it is the first, its reset may overtake its READY.
	for i := range 10 {
		if strings.Contains(r.wait(t, i), `peer is a "ROUTER" socket`) {
			return
		}
	}
	t.Errorf("events %q: want a failure that names the socket's type", r.list())
}

func TestLibzmqThroughput(t *testing.T) {
	const messages = 100_000
	s, c := libzmq.Start(t, publish, "bind", "tcp://127.0.0.1:*", "0", "0"), newCounter(t)
	subscribe(t, libConfig(s.Line()), c)
	expectLine(t, s, subscribedLine)
	start := time.Now()
	s.Say(fmt.Sprint(messages))
	c.awaitMessages(messages)
	t.Logf("%d messages of 512 bytes: %.0f/s", messages, messages/time.Since(start).Seconds())
}
