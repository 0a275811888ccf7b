package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Config is how the backends of a fleet behave. They all behave the same.
type Config struct {
	// Host is the address that they listen on.
	Host string
	// Port is the first one's, the others have those behind it; 0 for any.
	Port int
	// Backends is how many there are.
	Backends int
	// Model is the one model they serve.
	Model string
	// Delay is the time until an answer begins, more or less by up to Spread, since
	// backends that all take the same time get into step.
	Delay, Spread time.Duration
	// Chunks is the number of content events of a stream, ChunkDelay the time
	// between two of them; 0 sends them back to back.
	Chunks     int
	ChunkDelay time.Duration
	// MaxBodyBytes bounds what is read of a request.
	MaxBodyBytes int64
}

// DefaultConfig is a fleet of four that answers at once.
func DefaultConfig() Config {
	return Config{Host: "127.0.0.1", Backends: 4, Model: "fake", Chunks: 20, MaxBodyBytes: 64 << 20}
}

// Validate returns all faults at once.
func (c Config) Validate() error {
	var faults []error
	if c.Backends < 1 || c.Backends > 1024 {
		faults = append(faults, fmt.Errorf("backends is %d, want 1 to 1024", c.Backends))
	}
	if c.Port < 0 || c.Port+c.Backends > 1<<16 {
		faults = append(faults, fmt.Errorf("port is %d, want 0, or %d ports from there on", c.Port, c.Backends))
	}
	if c.Model == "" {
		faults = append(faults, errors.New("model is empty, want a name"))
	}
	if c.Chunks < 1 {
		faults = append(faults, fmt.Errorf("chunks is %d, want at least 1", c.Chunks))
	}
	if c.Delay < 0 || c.ChunkDelay < 0 {
		faults = append(faults, fmt.Errorf("delay is %v and chunk delay %v, want neither below zero", c.Delay, c.ChunkDelay))
	}
	if c.Spread < 0 || c.Spread > c.Delay {
		faults = append(faults, fmt.Errorf("spread is %v, want 0 to the delay, %v", c.Spread, c.Delay))
	}
	return errors.Join(faults...)
}

// Fleet is several backends, each on a port of its own. Close ends it.
type Fleet struct {
	urls     []string
	backends []*backend
	book     book
	servers  []*http.Server
	running  sync.WaitGroup
}

// Start listens.
func Start(cfg Config) (*Fleet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure fake backends: %w", err)
	}
	f := &Fleet{}
	for i := range cfg.Backends {
		if err := f.add(cfg, i); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

func (f *Fleet) add(cfg Config, index int) error {
	port := 0
	if cfg.Port > 0 {
		port = cfg.Port + index
	}
	l, err := net.Listen("tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen for fake backend %d: %w", index, err)
	}
	b := &backend{cfg: cfg, index: index, answers: newAnswers(strconv.Itoa(index), cfg.Model), cache: newCache(), book: &f.book}
	s := &http.Server{
		Handler:           f.routes(b),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	f.urls = append(f.urls, "http://"+l.Addr().String())
	f.backends = append(f.backends, b)
	f.servers = append(f.servers, s)
	f.running.Go(func() { _ = s.Serve(l) })
	return nil
}

func (f *Fleet) routes(b *backend) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST /v1/chat/completions", b.mayLie(b.chat))
	m.HandleFunc("POST /v1/embeddings", b.mayLie(b.embed))
	m.HandleFunc("POST /v1/chat/completions/render", b.render("token_ids"))
	m.HandleFunc("POST /tokenize", b.render("tokens"))
	m.HandleFunc("GET /v1/models", b.models)
	m.HandleFunc("GET /metrics", b.metrics)
	m.HandleFunc("GET /health", b.healthy)
	m.HandleFunc("GET /health_generate", b.healthy)
	for _, path := range []string{"/get_model_info", "/model_info", "/get_server_info", "/server_info", "/version"} {
		m.HandleFunc("GET "+path, b.info)
	}
	m.HandleFunc("GET /fake/stats", f.serveStats)
	m.HandleFunc("POST /fake/garbage", b.setGarbage)
	return m
}

// URLs are the base URLs of the backends, in order.
func (f *Fleet) URLs() []string { return f.urls }

// Stats is what the fleet was asked so far.
func (f *Fleet) Stats() Stats {
	s := Stats{Served: f.book.list()}
	for _, b := range f.backends {
		s.Backends = append(s.Backends, b.stats())
	}
	return s
}

func (f *Fleet) serveStats(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(f.Stats())
}

// Close cuts all connections and waits for the listeners, and for a second at
// most for the handlers.
func (f *Fleet) Close() error {
	var faults []error
	for _, s := range f.servers {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if s.Shutdown(ctx) != nil {
			faults = append(faults, s.Close())
		}
		cancel()
	}
	f.running.Wait()
	return errors.Join(faults...)
}
