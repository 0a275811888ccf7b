package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"kvca/proxy/accesslog"
	"kvca/proxy/live"
	"kvca/proxy/record"
	"kvca/proxy/trace"
)

// watchers are who looks on as requests end.
type watchers struct {
	live   *live.Live
	log    *accesslog.Log // nil without
	tracer *trace.Tracer  // nil without
}

// watchersGrace is how long the last lines and spans may take on their way out.
const watchersGrace = 3 * time.Second

// openWatchers makes who looks on, before the proxy that they look on.
func (n *node) openWatchers() error {
	s, w := n.settings, &n.watchers
	w.live = live.New(live.Config{
		InFlight: func() int64 { return n.proxy.InFlight() },
		Queued:   func() int64 { return n.settings.proxy.Queue.WaitingAll() },
	})
	s.proxy.Observers, s.proxy.WantsDetail = []record.Observer{w.live}, w.live.WantsDetail
	if c := s.watch.log; c.Path != "" {
		key := binary.LittleEndian.AppendUint64(nil, s.proxy.Key.K0)
		c.Key, c.MaxBytes, c.Logger, c.Registerer = binary.LittleEndian.AppendUint64(key, s.proxy.Key.K1), accesslog.DefaultConfig().MaxBytes, n.log, n.metrics
		var err error
		if w.log, err = accesslog.Open(c); err != nil {
			return fmt.Errorf("--access-log: %w", err)
		}
		s.proxy.Observers = append(s.proxy.Observers, w.log)
		n.front.reloads = append(n.front.reloads, w.log.Reopen)
	}
	c := trace.Config{
		Endpoint: s.watch.traceTo, HeadersFile: s.watch.traceHeaders, Ratio: s.watch.traceRatio, Service: s.watch.traceService,
		Node: s.proxy.Node, Version: s.proxy.Version, Address: n.addressOf, Logger: n.log, Registerer: n.metrics,
	}
	if !c.Enabled() {
		return nil
	}
	var err error
	if w.tracer, err = trace.New(c); err != nil {
		return fmt.Errorf("--trace-endpoint: %w", err)
	}
	s.proxy.Tracer = w.tracer
	return nil
}

// addressOf is where a backend is, as HOST:PORT.
func (n *node) addressOf(id string) string {
	for _, b := range n.pool.All() {
		if b.ID != id {
			continue
		}
		if found := n.pool.Of(b); found != nil {
			return defaultID(found.Config().URL)
		}
	}
	return ""
}

// close sends and writes what is left.
func (w *watchers) close() {
	ctx, cancel := context.WithTimeout(context.Background(), watchersGrace)
	defer cancel()
	if w.log != nil {
		_ = w.log.Close(ctx) // its counters tell of lines that were lost
	}
	if w.tracer != nil {
		_ = w.tracer.Close(ctx)
	}
}
