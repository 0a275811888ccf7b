package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"kvca/bench/engine"
	"kvca/proxy/backend"
)

// embedded is a simulated inference server inside the process, on loopback
// ports of its own: the gateway meets it as it would meet any other.
type embedded struct {
	id       string
	listener net.Listener
	server   *engine.Server
}

func newEmbedded(i int, s *settings) (*embedded, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open simulated backend %d: %w", i, err)
	}
	c := engine.ServerConfig{Model: "sim", Profile: s.simulateProfile, Speedup: s.simulateSpeed}
	if s.simulateEvents {
		c.Events = engine.Events{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0", Bind: true}
	}
	// All have the same seed, as engines of one model answer alike.
	e := &embedded{id: fmt.Sprintf("sim-%d", i), listener: l, server: engine.NewServer(c)}
	if err := e.server.OpenEvents(); err != nil {
		l.Close()
		return nil, fmt.Errorf("open simulated backend %d: %w", i, err)
	}
	return e, nil
}

// config is how the pool knows the engine.
func (e *embedded) config() backend.Config {
	c := backend.Config{ID: e.id, URL: "http://" + e.listener.Addr().String()}
	if endpoint, replay := e.server.EventSockets(); endpoint != "" {
		c.Events = endpoint + "," + replay
	}
	return c
}

// serve serves the engine until ctx ends or its listener is closed.
func (e *embedded) serve(ctx context.Context, log *slog.Logger) {
	if err := engine.Serve(ctx, e.listener, e.server); err != nil && !errors.Is(err, net.ErrClosed) {
		log.Error("simulated backend failed", "backend", e.id, "error", err)
	}
}

// close ends an engine that is not served.
func (e *embedded) close() {
	e.listener.Close()
	e.server.Close()
}
