package zmtp

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestReplayGoesOverADealer(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := w.listen()
		go func() {
			router, err := Accept(t.Context(), accept(t, l), Config{}, "ROUTER")
			if err != nil {
				t.Errorf("accept a DEALER: %v", err)
				return
			}
			request, err := router.Receive()
			if err != nil || len(request) != 2 || len(request[0]) != 0 {
				t.Errorf("request %q, %v: want the empty frame and the start", request, err)
			}
			if err := router.Send(nil, []byte("topic"), request[1], []byte("payload")); err != nil {
				t.Error(err)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d, err := Dial(ctx, w.config(), "DEALER")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Send(nil, []byte("8 bytes.")); err != nil {
			t.Fatal(err)
		}
		reply, err := d.Receive()
		if err != nil || len(reply) != 4 || string(reply[2]) != "8 bytes." {
			t.Fatalf("reply %q, %v: want four frames with the start", reply, err)
		}
		start := time.Now()
		if _, err := d.Receive(); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
			t.Errorf("waited %v for %v: want the context's deadline", time.Since(start), err)
		}
	})
}

func TestCloseEndsAReceive(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.serve("ROUTER")
		d, err := Dial(t.Context(), w.config(), "DEALER")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { d.Close() })
		start := time.Now()
		if _, err := d.Receive(); err == nil || time.Since(start) != time.Second {
			t.Errorf("receive ended with %v after %v: want an error at the close", err, time.Since(start))
		}
	})
}

// libzmq since 4.3.3 subscribes by command where the publisher is of ZMTP 3.1.
func TestPublisherTakesSubscriptionsOfBothForms(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l := w.listen()
		go func() {
			nc, err := w.us.Dial(t.Context(), "engine:5557")
			if err != nil {
				t.Error(err)
				return
			}
			stream := append(raw("SUB"), 0, 2, 1, 'a')
			stream = appendCommand(stream, "SUBSCRIBE", []byte("b"))
			stream = appendCommand(stream, "CANCEL", []byte("b"))
			if _, err := nc.Write(stream); err != nil {
				t.Error(err)
			}
		}()
		p, err := Accept(t.Context(), accept(t, l), Config{}, "PUB")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"\x01a", "\x01b", "\x00b"} {
			frames, err := p.Receive()
			if err != nil || len(frames) != 1 || string(frames[0]) != want {
				t.Errorf("received %q, %v: want %q", frames, err, want)
			}
		}
	})
}

func TestMisuseIsToldWithoutAConnection(t *testing.T) {
	if _, err := Dial(t.Context(), Config{Endpoint: "tcp://engine:1"}, "PAIR"); err == nil {
		t.Error("a PAIR was made: want that its type can't be")
	}
	if _, err := Dial(t.Context(), Config{Endpoint: "tcp://engine:1", Bind: true}, "DEALER"); err == nil {
		t.Error("Dial bound: want that it only connects")
	}
	bubble(t, func(t *testing.T, w *world) {
		w.serve("ROUTER")
		d, err := Dial(t.Context(), w.config(), "DEALER")
		if err != nil {
			t.Fatal(err)
		}
		if d.Send() == nil || d.Send(make([][]byte, maxParts+1)...) == nil {
			t.Error("messages of no frame, or of 9, were sent: want errors")
		}
	})
}
