package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"kvca/proxy/backend"
	"kvca/router"
	"kvca/state/cbr"
	"kvca/state/chain"
)

// Proxy serves the client API. It is an http.Handler; its methods may be called
// from any goroutine.
type Proxy struct {
	cfg       Config
	pool      *backend.Pool
	router    *router.Router
	endpoints map[string]*endpoint
	resolver  func(string) (string, *cbr.Rules, error)
	namers    sync.Pool
	chunks    sync.Pool
	budget    budget
	retries   retryBudget
	pins      *pins
	metrics   *metrics
	inFlight  atomic.Int64
}

// New makes a proxy that routes by r to the backends of pool.
func New(cfg Config, r *router.Router, pool *backend.Pool) (*Proxy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure proxy: %w", err)
	}
	p := &Proxy{
		cfg: cfg, pool: pool, router: r,
		endpoints: make(map[string]*endpoint, len(endpoints)+len(cfg.Paths)),
		budget:    budget{limit: cfg.BodyBudget},
		pins:      newPins(),
		metrics:   newMetrics(cfg.Registerer),
	}
	for path, e := range endpoints {
		p.endpoints[path] = e
	}
	for _, path := range cfg.Paths {
		if p.endpoints[path] == nil {
			p.endpoints[path] = passThrough(path)
		}
	}
	p.resolver = p.resolve
	p.namers.New = func() any { return new(namer) }
	p.chunks.New = func() any { b := make([]byte, chunkBytes); return &b }
	return p, nil
}

// namer turns a body into its name: the facts that routing needs, and the chain.
type namer struct {
	encoder cbr.Encoder
	hasher  chain.Hasher
}

// InFlight is the number of requests that are being served.
func (p *Proxy) InFlight() int64 { return p.inFlight.Load() }

// Ready is whether the first discovery of every backend is over.
func (p *Proxy) Ready() bool { return p.pool.Ready() }

// ServeHTTP serves one request of a client.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" || (len(r.URL.Path) > len(modelsPrefix) && r.URL.Path[:len(modelsPrefix)] == modelsPrefix) {
		p.serveModels(w, r)
		return
	}
	x := p.begin(w, r)
	defer x.end()
	x.serve()
}

// resolve is the encoder's question about a model: what it is really called, and
// what stays out of its CBR. An unknown model is a 404 before anything else in
// the body is judged.
func (p *Proxy) resolve(name string) (string, *cbr.Rules, error) {
	model := name
	if real, ok := p.cfg.Aliases[name]; ok {
		model = real
	}
	if _, known := p.pool.Model(model); known {
		return model, p.rules(model), nil
	}
	if !p.pool.Ready() {
		return "", nil, unavailable("starting", "The gateway is still asking its backends which models they serve. Try again shortly.")
	}
	known := p.models()
	if len(known) == 0 { // a restart while the engines are down must not turn 503 into 404
		return "", nil, unavailable("no_backend", "No backend has said yet which models it serves. Try again shortly.")
	}
	return "", nil, unknownModel(name, known)
}

// rules are a model's own, else those for all models, nil for the built-in ones.
func (p *Proxy) rules(model string) *cbr.Rules {
	if own := p.cfg.Rules[model]; own != nil {
		return own
	}
	return p.cfg.Rules[""]
}

// models are the names that clients may use, sorted.
func (p *Proxy) models() []string {
	names := p.pool.Models()
	for alias, model := range p.cfg.Aliases {
		if _, known := p.pool.Model(model); known {
			names = append(names, alias)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
