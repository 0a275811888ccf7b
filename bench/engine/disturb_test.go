package engine

import (
	"context"
	"net"
	"net/http"
	"testing"

	"kvca/proxy/engine/kvevent"
	"kvca/proxy/engine/zmtp"
)

func disturb(t *testing.T, s *Server, mode string) {
	t.Helper()
	object(t, ask(t, s, "/sim/events", m{"mode": mode}))
}

func TestEventsAreDisturbedAsOrdered(t *testing.T) {
	s, l, ask := announced(t, ServerConfig{Speedup: 100, Events: onLoopback})
	seed := uint64(0)
	expect := func(mode string, requests int, want ...uint64) {
		t.Helper()
		if mode != "" {
			disturb(t, s, mode)
		}
		for range requests {
			seed++
			ask(20, seed)
		}
		for _, seq := range want {
			if m := l.next(t); m.seq != seq {
				t.Errorf("%s: batch %d, want %d", mode, m.seq, seq)
			}
		}
	}
	expect("", 1, 0)
	expect("lost", 2, 2)
	expect("hole", 2, 4)
	expect("twice", 1, 5, 5)
	expect("swapped", 2, 7, 6)
	if got := replayed(t, s, 0); len(got) != 7 {
		t.Errorf("%d batches can be replayed, want all of 8 but the hole", len(got))
	}
	for _, order := range []m{{"mode": "other"}, {"mode": "lost", "count": 0}} {
		if w := askRaw(t, s, order); w.Code != http.StatusBadRequest {
			t.Errorf("order %v: status %d", order, w.Code)
		}
	}
	if w := askRaw(t, started(t, ServerConfig{}), m{"mode": "lost"}); w.Code != http.StatusBadRequest {
		t.Errorf("an order to a server without events: status %d", w.Code)
	}
}

func askRaw(t *testing.T, s *Server, order m) *timed { return ask(t, s, "/sim/events", order) }

// A restart cuts the subscriber off, empties the cache, and begins at 0 without a word.
func TestARestartIsToldByNothingButNumbers(t *testing.T) {
	s, l, ask := announced(t, ServerConfig{Speedup: 100, Events: onLoopback})
	ask(40, 1)
	ask(40, 2)
	for range 2 {
		l.next(t)
	}
	<-l.connected
	disturb(t, s, "restart")
	<-l.connected
	subscription(t, s)
	ask(40, 1)
	m := l.next(t)
	b := decoded(t, m.payload)
	if m.seq != 0 || len(b.Events) != 1 || b.Events[0].Kind != kvevent.Stored || len(b.Events[0].Stored.Hashes) != 2 {
		t.Errorf("batch %d: %+v, want the first with two blocks stored again", m.seq, b.Events)
	}
}

// The same address, with the same endpoints: what a process that was started again looks like.
func TestAnotherServerTakesThePlaceOfAKilledOne(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	cfg := ServerConfig{Speedup: 100, Events: onLoopback}
	var l *listener
	for life := range 2 {
		s := NewServer(cfg)
		if err := s.OpenEvents(); err != nil {
			t.Fatal(err)
		}
		cfg.Events.Endpoint, cfg.Events.Replay = s.EventSockets()
		ctx, kill := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, ln, s) }()
		if l == nil {
			l = listening(t, zmtp.Config{Endpoint: cfg.Events.Endpoint})
		}
		subscription(t, s)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := post(t, client, "http://"+address+"/v1/completions", `{"prompt":"`+words(20, 1)+`"}`)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		m := l.next(t)
		for life > 0 && m.seq != 0 { // of the life before: of blocks that its answer filled
			m = l.next(t)
		}
		if m.seq != 0 {
			t.Errorf("life %d begins with batch %d", life, m.seq)
		}
		kill()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if ln, err = net.Listen("tcp", address); err != nil {
			t.Fatal(err)
		}
	}
	_ = ln.Close()
}
