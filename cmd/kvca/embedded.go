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

// embedded is a simulated inference server inside the process, on a loopback
// port of its own: the gateway meets it as it would meet any other.
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
	// All have the same seed, as engines of one model answer alike.
	return &embedded{id: fmt.Sprintf("sim-%d", i), listener: l, server: engine.NewServer(engine.ServerConfig{
		Model: "sim", Profile: s.simulateProfile, Speedup: s.simulateSpeed,
	})}, nil
}

// config is how the pool knows the engine.
func (e *embedded) config() backend.Config {
	return backend.Config{ID: e.id, URL: "http://" + e.listener.Addr().String()}
}

// serve serves the engine until ctx ends or its listener is closed.
func (e *embedded) serve(ctx context.Context, log *slog.Logger) {
	if err := engine.Serve(ctx, e.listener, e.server); err != nil && !errors.Is(err, net.ErrClosed) {
		log.Error("simulated backend failed", "backend", e.id, "error", err)
	}
}
