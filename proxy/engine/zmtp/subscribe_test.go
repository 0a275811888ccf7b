package zmtp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMessagesFollowTheSubscription(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, r := w.listen(), newRecorder()
		c := w.config()
		c.Subscribe = []string{"kv@a", "kv@b"}
		subscribe(t, c, r)
		p, err := Accept(t.Context(), accept(t, l), Config{Heartbeat: -1}, "PUB")
		if err != nil {
			t.Fatal(err)
		}
		subscribed(t, p, "kv@a")
		subscribed(t, p, "kv@b")
		long := strings.Repeat("x", 300)
		for _, frames := range [][][]byte{{[]byte("kv@a"), {0, 1}, []byte("payload")}, {nil, []byte(long)}, {nil}} {
			if err := p.Send(frames...); err != nil {
				t.Fatal(err)
			}
		}
		p.Close()
		want := []string{"connected", `["kv@a" "\x00\x01" "payload"]`, fmt.Sprintf(`["" %q]`, long), `[""]`, "disconnected: closed by the peer"}
		for i, event := range want {
			if got := r.wait(t, i); got != event {
				t.Errorf("event %d is %s: want %s", i, got, event)
			}
		}
	})
}

func TestConnectsAndSubscribesAgainAfterEachLoss(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, r := w.listen(), newRecorder()
		subscribe(t, w.config(), r)
		for i := range 5 {
			p := publisher(t, l)
			if err := p.Send([]byte{byte('0' + i)}); err != nil {
				t.Fatal(err)
			}
			want := []string{"connected", fmt.Sprintf(`["%d"]`, i), "disconnected: closed by the peer"}
			r.wait(t, 3*i+1)
			p.Close()
			for j, event := range want {
				if got := r.wait(t, 3*i+j); got != event {
					t.Fatalf("connection %d: event %s: want %s", i, got, event)
				}
			}
		}
	})
}

// An engine may be away for hours; it must be heard within 2 s of its return.
func TestRetriesForEverWithinTheBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, c := newRecorder(), w.config()
		c.Failed = r.Failed
		subscribe(t, c, r)
		time.Sleep(time.Hour)
		at := r.times()
		if len(at) < 1000 {
			t.Errorf("%d attempts in an hour: want one each 2 s at least", len(at))
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < minBackoff || gap > maxBackoff {
				t.Fatalf("attempt %d came after %v: want %v to %v", i, gap, minBackoff, maxBackoff)
			}
		}
		l := w.listen()
		start := time.Now()
		publisher(t, l)
		if waited := time.Since(start); waited > maxBackoff {
			t.Errorf("connected %v after the engine's return: want at most %v", waited, maxBackoff)
		}
	})
}

// An engine that is away for a night must not fill the log.
func TestRepeatedFailuresAreLoggedOnceAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		c := w.config()
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		stop := subscribe(t, c, newRecorder())
		time.Sleep(time.Hour)
		_ = stop()
		if lines := strings.Count(log.String(), "\n"); lines < 50 || lines > 61 {
			t.Errorf("an hour of failures made %d lines: want one a minute; the first is %.200s", lines, log.String())
		}
	})
}

func TestHandlerMayCutItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, r := w.listen(), newRecorder()
		subscribe(t, w.config(), r)
		publisher(t, l)
		r.wait(t, 0)
		r.conns[0].Close()
		if got := r.wait(t, 1); got != "disconnected: closed by us" {
			t.Errorf("event %q: want the loss of the connection", got)
		}
		publisher(t, l)
		if got := r.wait(t, 2); got != "connected" {
			t.Errorf("event %q: want connected again", got)
		}
	})
}

// Whatever Subscribe waits for, its context ends it at once.
func TestContextEndsEveryWait(t *testing.T) {
	cases := map[string]func(t *testing.T, w *world){
		"for a pause":     func(*testing.T, *world) {},
		"for a greeting":  func(_ *testing.T, w *world) { w.listen() },
		"for a message":   func(_ *testing.T, w *world) { w.serve("PUB") },
		"for a publisher": func(*testing.T, *world) {},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				prepare(t, w)
				c := w.config()
				if c.Bind = name == "for a publisher"; c.Bind {
					c.Endpoint = "tcp://*:5557"
				}
				stop := subscribe(t, c, newRecorder())
				time.Sleep(time.Second)
				synctest.Wait()
				start := time.Now()
				if err := stop(); !errors.Is(err, context.Canceled) || time.Since(start) != 0 {
					t.Errorf("returned %v after %v: want the context's error at once", err, time.Since(start))
				}
			})
		})
	}
}

func TestBoundSocketHearsSeveralPublishers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, c := newRecorder(), w.config()
		c.Bind, c.Endpoint, c.Failed = true, "tcp://*:5557", r.Failed
		subscribe(t, c, r)
		synctest.Wait()
		var publishers []*Conn
		for i := range maxPublishers {
			p := w.connectAs(t, "PUB")
			subscribed(t, p, "")
			if err := p.Send([]byte{'a' + byte(i)}); err != nil {
				t.Fatal(err)
			}
			publishers = append(publishers, p)
			r.wait(t, 2*i+1)
		}
		if _, err := w.tryConnectAs(t, "PUB"); err == nil {
			t.Errorf("publisher %d was let in: want it closed at once", maxPublishers+1)
		}
		if got := r.wait(t, 2*maxPublishers); !strings.Contains(got, "turned away") {
			t.Errorf("event %q: want that one was turned away", got)
		}
		publishers[3].Close()
		r.wait(t, 2*maxPublishers+1)
		synctest.Wait()
		subscribed(t, w.connectAs(t, "PUB"), "")
	})
}

func (w *world) tryConnectAs(t *testing.T, socketType string) (*Conn, error) {
	c := Config{
		Endpoint:  "tcp://us:5557",
		Heartbeat: -1,
		Dial:      func(ctx context.Context, _, addr string) (net.Conn, error) { return w.engine.Dial(ctx, addr) },
	}
	return Dial(t.Context(), c, socketType)
}

func (w *world) connectAs(t *testing.T, socketType string) *Conn {
	t.Helper()
	c, err := w.tryConnectAs(t, socketType)
	if err != nil {
		t.Fatalf("connect as %s: %v", socketType, err)
	}
	return c
}

func TestBoundSocketOutlivesStrangers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, c := newRecorder(), w.config()
		c.Bind, c.Endpoint, c.Failed = true, "tcp://*:5557", r.Failed
		subscribe(t, c, r)
		synctest.Wait()
		if _, err := w.tryConnectAs(t, "DEALER"); err == nil {
			t.Error("a DEALER found a SUB agreeable: want it refused")
		}
		nc, err := w.engine.Dial(t.Context(), "us:5557")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		r.wait(t, 1)
		subscribed(t, w.connectAs(t, "PUB"), "")
		if got := r.wait(t, 2); got != "connected" {
			t.Errorf("event %q: want connected", got)
		}
	})
}

func TestAllFaultsOfAConfigurationAreToldAtOnce(t *testing.T) {
	c := Config{
		Endpoint:   "http://engine",
		Subscribe:  make([]string, maxTopics+1),
		MaxFrame:   10,
		MaxMessage: 9,
		Heartbeat:  time.Millisecond,
	}
	err := Subscribe(t.Context(), c, newRecorder())
	if err == nil {
		t.Fatal("it ran: want its faults")
	}
	for _, key := range []string{"endpoint:", "subscribe:", "max message:", "heartbeat:"} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("faults %q don't name %q", err, key)
		}
	}
}
