package publish

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kvca/cluster/simnet"
	"kvca/proxy/engine/zmtp"
	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an engine and a gateway on a network in memory, in virtual time.
type world struct {
	t               *testing.T
	engine, gateway *simnet.Host
}

func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		t.Cleanup(n.Close)
		test(t, &world{t: t, engine: n.Host("engine"), gateway: n.Host("gateway")})
	})
}

func dialFrom(h *simnet.Host) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) { return h.Dial(ctx, addr) }
}

func listenAt(h *simnet.Host, port int) func(context.Context, string, string) (net.Listener, error) {
	return func(context.Context, string, string) (net.Listener, error) { return h.Listen(port) }
}

// publisher starts one at the engine.
func (w *world) publisher(c Config) *Publisher {
	w.t.Helper()
	c.Dial = dialFrom(w.engine)
	c.Listen = func(_ context.Context, _, address string) (net.Listener, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		var n int
		if _, err := fmt.Sscan(port, &n); err != nil {
			return nil, err
		}
		return w.engine.Listen(n)
	}
	p, err := New(c)
	if err != nil {
		w.t.Fatalf("new publisher: %v", err)
	}
	w.t.Cleanup(func() { p.Close() })
	return p
}

// ear is a SUB's Handler: it passes on numbers, and the coming of connections as
// up, their going as down.
type ear struct {
	t     *testing.T
	heard chan uint64
	block chan struct{} // nil, or what a message waits for
}

const (
	up   = 1<<64 - 1
	down = 1<<64 - 2
)

func (e *ear) Connected(*zmtp.Conn)           { e.heard <- up }
func (e *ear) Disconnected(*zmtp.Conn, error) { e.heard <- down }

func (e *ear) Message(_ *zmtp.Conn, frames [][]byte) {
	if len(frames) != 3 || len(frames[1]) != 8 {
		e.t.Errorf("message %q: want topic, number and payload", frames)
		return
	}
	seq := binary.BigEndian.Uint64(frames[1])
	if want := payload(int(seq)); string(frames[0]) != "kv-events" || string(frames[2]) != string(want) {
		e.t.Errorf("batch %d is %q: want topic kv-events and payload %q", seq, frames, want)
	}
	if e.block != nil {
		<-e.block
	}
	e.heard <- seq
}

// hears takes what comes next and compares it.
func (e *ear) hears(want ...uint64) {
	e.t.Helper()
	for i, w := range want {
		select {
		case got := <-e.heard:
			if got != w {
				e.t.Fatalf("heard %d at position %d: want %d", got, i, want)
			}
		case <-time.After(20 * time.Second):
			e.t.Fatalf("heard nothing more at position %d: want %d", i, want)
		}
	}
}

// silence fails where anything else was heard.
func (e *ear) silence() {
	e.t.Helper()
	synctest.Wait()
	select {
	case got := <-e.heard:
		e.t.Fatalf("heard %d: want nothing more", got)
	default:
	}
}

// listen runs a SUB until the test's end.
func listen(t *testing.T, c zmtp.Config, e *ear) {
	t.Helper()
	e.t, e.heard = t, make(chan uint64, 10_000)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- zmtp.Subscribe(ctx, c, e) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Subscribe returned %v: want its context's error", err)
		}
	})
}

func payload(i int) []byte { return fmt.Appendf(nil, "batch %d", i) }

// publish sends batches numbered from first up to, without, end.
func publish(p *Publisher, first, end int) {
	for i := first; i < end; i++ {
		p.Publish(payload(i))
	}
}

// dealer opens one for replays.
func (w *world) dealer(p *Publisher) *zmtp.Conn {
	w.t.Helper()
	c := zmtp.Config{Endpoint: p.ReplayEndpoint(), Dial: dialFrom(w.gateway)}
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	d, err := zmtp.Dial(ctx, c, "DEALER")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { d.Close(); cancel() })
	return d
}

func ask(t *testing.T, d *zmtp.Conn, start uint64) {
	t.Helper()
	if err := d.Send(nil, binary.BigEndian.AppendUint64(nil, start)); err != nil {
		t.Fatal(err)
	}
}

// replayed reads a replay to its end and returns the numbers.
func replayed(t *testing.T, d *zmtp.Conn) []uint64 {
	t.Helper()
	var out []uint64
	for {
		frames, err := d.Receive()
		if err != nil {
			t.Fatalf("replay after %d: %v", out, err)
		}
		if len(frames) != 4 || len(frames[0]) != 0 || len(frames[2]) != 8 {
			t.Fatalf("reply %q: want empty, topic, number, payload", frames)
		}
		seq := binary.BigEndian.Uint64(frames[2])
		if seq == up && len(frames[1]) == 0 && len(frames[3]) == 0 {
			return out
		}
		if want := payload(int(seq)); string(frames[1]) != "kv-events" || !slices.Equal(frames[3], want) {
			t.Fatalf("reply %q: want topic kv-events and payload %q", frames, want)
		}
		out = append(out, seq)
	}
}
