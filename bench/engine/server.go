package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"kvca/bench/publish"
)

// ServerConfig describes a simulated inference server.
type ServerConfig struct {
	// Model is the name it serves; "sim" by default. It labels the metrics.
	Model string
	// Models are further names. Each has a cache of its own content within the same memory, and is an adapter in events.
	Models []string
	// Profile is the engine; Profile8B by default.
	Profile Profile
	// Speedup is how many seconds of the engine pass in one of the clock; 1 by default. Above about 200 the steps of a batch are
	// shorter than the shell's own work and latencies say more about the shell than about the engine.
	Speedup float64
	// HeadersWithFirstToken holds a stream's headers back until there is something to send. vLLM's server does not: its headers
	// come at once, minutes before the first token if need be. Other servers do.
	HeadersWithFirstToken bool
	// MaxModelLen is the longest prompt and answer together; 131,072 tokens by default, and never more than the cache holds.
	MaxModelLen int
	// MaxBodyBytes bounds a request's body; 64 MiB by default.
	MaxBodyBytes int64
	// Seed changes all answers.
	Seed uint64
	// Lacks is what this server does not offer.
	Lacks Lacks
	// Events announce what the cache holds. By default they do not.
	Events Events
}

func (c ServerConfig) withDefaults() ServerConfig {
	if c.Model == "" {
		c.Model = "sim"
	}
	if c.Profile == (Profile{}) {
		c.Profile = Profile8B
	}
	c.Profile = c.Profile.withDefaults()
	if c.Speedup <= 0 {
		c.Speedup = 1
	}
	if c.MaxModelLen <= 0 {
		c.MaxModelLen = 131_072
	}
	c.MaxModelLen = min(c.MaxModelLen, c.Profile.KVTokens/c.Profile.BlockTokens*c.Profile.BlockTokens)
	if c.MaxBodyBytes <= 0 {
		c.MaxBodyBytes = 64 << 20
	}
	return c
}

// Server is a simulated engine behind the HTTP API of vLLM's server. Start it before it takes requests and close it after.
type Server struct {
	cfg        ServerConfig
	engineUnit int
	driver     *driver
	mux        *http.ServeMux
	models     *models
	faults     faults
	textFaults faults // of the endpoints that only turn requests into tokens
	responses  *responseStore
	ids        atomic.Uint64
	born       time.Time
	endings    endings
	announcer  *announcer                        // nil: events are off
	publisher  atomic.Pointer[publish.Publisher] // nil: not open
}

// NewServer returns a server that has not been started.
func NewServer(cfg ServerConfig) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, engineUnit: cfg.Profile.BlockTokens, driver: newDriver(cfg.Profile, cfg.Speedup),
		models: newModels(cfg), responses: newResponseStore(), born: time.Now(),
	}
	s.announcer = newAnnouncer(cfg, s.driver.engine)
	s.mux = s.routes()
	return s
}

// Start begins the engine's time. It ends with ctx or with Close, whichever is first. A second call does nothing. Events are
// published only if OpenEvents has been called.
func (s *Server) Start(ctx context.Context) { s.driver.launch(ctx) }

// Close stops the engine as if it had been killed: answers in the making are cut off. It waits for the engine's goroutine and for
// those of the event sockets.
func (s *Server) Close() {
	s.driver.close()
	s.closeEvents()
}

// Live is how many requests wait for the engine or for the rest of their answer.
func (s *Server) Live() int {
	n := 0
	s.driver.inspect(func(*Engine) { n = len(s.driver.tickets) })
	return n
}

// Cancelled is how many requests ended because their client left.
func (s *Server) Cancelled() int {
	n := 0
	s.driver.inspect(func(*Engine) { n = int(s.driver.cancelled) })
	return n
}

// Inspect runs f on the engine between two steps. f must not keep it, nor submit to it.
func (s *Server) Inspect(f func(*Engine)) { s.driver.inspect(f) }

// uvicorn closes a connection that has been idle for so long.
const keepAlive = 5 * time.Second

// Serve starts s and serves it on ln until ctx ends, with vLLM's keep-alive. Then connections are cut, as by a kill. An engine that
// comes back is another Server on a listener of the same address, with the same endpoints for its events.
func Serve(ctx context.Context, ln net.Listener, s *Server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.OpenEvents(); err != nil {
		return errors.Join(err, ln.Close())
	}
	s.Start(ctx)
	hs := &http.Server{Handler: s, IdleTimeout: keepAlive, ReadHeaderTimeout: 10 * time.Second}
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		<-ctx.Done()
		s.Close()
		_ = hs.Close()
	}()
	err := hs.Serve(ln)
	cancel()
	<-cut
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
