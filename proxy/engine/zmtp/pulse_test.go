package zmtp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// connected starts a SUB and gives the engine's bare side of it.
func connected(t *testing.T, w *world, c Config, r *recorder) net.Conn {
	t.Helper()
	l := w.listen()
	subscribe(t, c, r)
	nc := accept(t, l)
	if _, err := nc.Write(raw("PUB")); err != nil {
		t.Fatal(err)
	}
	swallow(t, nc)
	r.wait(t, 0)
	return nc
}

func expect(t *testing.T, nc net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %q, %v: want %q", got, err, want)
	}
}

func TestPingIsAnsweredAlsoWithinAMessage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRecorder()
		nc := connected(t, w, w.config(), r)
		stream := append([]byte{flagMore, 1, 'a'}, appendCommand(nil, "PING", []byte("\x00\x09context"))...)
		stream = append(stream, appendCommand(nil, "UNKNOWN", []byte("?"))...)
		stream = append(stream, 0, 1, 'b')
		if _, err := nc.Write(stream); err != nil {
			t.Fatal(err)
		}
		expect(t, nc, appendCommand(nil, "PONG", []byte("context")))
		if got := r.wait(t, 1); got != `["a" "b"]` {
			t.Errorf("event %s: want the message that the commands stood in", got)
		}
	})
}

func TestPingsComeEveryIntervalAlsoWhileMessagesDo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, c := newRecorder(), w.config()
		c.Heartbeat = time.Second
		nc := connected(t, w, c, r)
		var stream sync.WaitGroup
		stream.Go(func() {
			for {
				if _, err := nc.Write([]byte{0, 1, 'x'}); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
		start := time.Now()
		for range 10 {
			expect(t, nc, appendCommand(nil, "PING", []byte{0, 30})) // three intervals in tenths of a second
		}
		if took := time.Since(start); took < 9*time.Second || took > 12*time.Second {
			t.Errorf("10 PINGs took %v: want about 10 s", took)
		}
		nc.Close()
		stream.Wait()
	})
}

func TestSilentPeers(t *testing.T) {
	cases := map[string]struct {
		sends []byte
		lost  bool
	}{
		"one that has answered is dropped":        {appendCommand(nil, "PONG", nil), true},
		"one that stops in a message is dropped":  {[]byte{flagMore, 1, 'x', 0}, true},
		"one that never answered is not":          {nil, false},
		"one that never answered, after messages": {[]byte{0, 1, 'x'}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				r := newRecorder()
				nc := connected(t, w, w.config(), r)
				go func() { _, _ = io.Copy(io.Discard, nc) }()
				if _, err := nc.Write(c.sends); err != nil {
					t.Fatal(err)
				}
				time.Sleep(maxMissed*defaultHeartbeat + time.Second)
				lost := slices.Contains(r.list(), "disconnected: peer was silent for 15s")
				if lost != c.lost {
					t.Errorf("events %q: want lost %v", r.list(), c.lost)
				}
			})
		})
	}
}

// A handler that takes long keeps us from reading; that isn't the peer's silence.
func TestSlowHandlerDoesNotMakeThePeerSilent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRecorder()
		r.pause = time.Minute
		nc := connected(t, w, w.config(), r)
		stream := appendCommand(nil, "PONG", nil)
		if _, err := nc.Write(append(stream, 0, 1, 'a')); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := nc.Write([]byte{0, 1, 'b'}); err != nil {
			t.Fatal(err)
		}
		if got := r.wait(t, 2); got != `["b"]` {
			t.Errorf("event %q: want the message that came meanwhile", got)
		}
	})
}

func TestPeerThatDoesNotReadIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := w.listen()
		c := w.config()
		c.Heartbeat = -1
		go func() {
			nc := accept(t, l)
			_, _ = nc.Write(raw("ROUTER"))
		}()
		d, err := Dial(t.Context(), c, "DEALER")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		err = d.Send(make([]byte, 1<<20))
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > writeTimeout {
			t.Errorf("send ended with %v after %v: want the deadline of %v", err, time.Since(start), writeTimeout)
		}
		if err := d.Send([]byte("x")); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("send after a failed one: %v: want that the connection is closed", err)
		}
	})
}
