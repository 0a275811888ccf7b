package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	"kvca/bench/fake"
	"kvca/bench/plain"
)

// runFake serves fake backends until it is ended, after it has printed their
// base URLs, one a line.
func runFake(ctx context.Context, args []string) error {
	cfg := fake.DefaultConfig()
	f := flag.NewFlagSet("fake", flag.ContinueOnError)
	f.StringVar(&cfg.Host, "host", cfg.Host, "address that they listen on")
	f.IntVar(&cfg.Port, "port", cfg.Port, "the first one's port, 0 for any")
	f.IntVar(&cfg.Backends, "backends", cfg.Backends, "how many backends, each on a port of its own")
	f.StringVar(&cfg.Model, "model", cfg.Model, "the model they serve")
	f.DurationVar(&cfg.Delay, "delay", cfg.Delay, "time until an answer begins")
	f.IntVar(&cfg.Chunks, "chunks", cfg.Chunks, "events of a stream")
	f.DurationVar(&cfg.Spread, "spread", cfg.Spread, "by how much the delay varies at most")
	f.DurationVar(&cfg.ChunkDelay, "chunk-delay", cfg.ChunkDelay, "time between two events")
	if err := f.Parse(args); err != nil {
		return err
	}
	fleet, err := fake.Start(cfg)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(fleet.URLs(), "\n"))
	<-ctx.Done()
	return fleet.Close()
}

// runPlain serves the bare reverse proxy until it is ended.
func runPlain(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("plain", flag.ContinueOnError)
	listen := f.String("listen", "127.0.0.1:8090", "where clients are served")
	backends := f.String("backends", "", "base URLs, with commas between them")
	if err := f.Parse(args); err != nil {
		return err
	}
	proxy, err := plain.New(strings.Split(*backends, ","))
	if err != nil {
		return err
	}
	s := &http.Server{Addr: *listen, Handler: proxy, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	stopped := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stopped()
	if err := s.ListenAndServe(); ctx.Err() == nil {
		return fmt.Errorf("serve on %s: %w", *listen, err)
	}
	return nil
}
