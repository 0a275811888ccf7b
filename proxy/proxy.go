package proxy

import (
	"fmt"
	"maps"
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
	current  atomic.Pointer[current]
	pool     *backend.Pool
	router   *router.Router
	namers   sync.Pool
	chunks   sync.Pool
	budget   budget
	retries  retryBudget
	pins     *pins
	sockets  sockets
	metrics  *metrics
	inFlight atomic.Int64
}

// New makes a proxy that routes by r to the backends of pool.
func New(cfg Config, r *router.Router, pool *backend.Pool) (*Proxy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure proxy: %w", err)
	}
	p := &Proxy{
		pool: pool, router: r,
		budget:  budget{limit: cfg.BodyBudget},
		pins:    newPins(),
		metrics: newMetrics(cfg.Registerer),
	}
	p.current.Store(newCurrent(cfg))
	p.namers.New = func() any { return newNamer() }
	p.chunks.New = func() any { b := make([]byte, chunkBytes); return &b }
	return p, nil
}

// current is a configuration that is in force. A request goes by one from its
// first header to its last byte, whatever is changed meanwhile.
type current struct {
	Config
	endpoints map[string]*endpoint
}

func newCurrent(cfg Config) *current {
	c := &current{cfg, make(map[string]*endpoint, len(endpoints)+len(cfg.Paths))}
	maps.Copy(c.endpoints, endpoints)
	for _, path := range cfg.Paths {
		if c.endpoints[path] == nil {
			c.endpoints[path] = passThrough(path)
		}
	}
	return c
}

// config is the configuration that is in force.
func (p *Proxy) config() *current { return p.current.Load() }

// Reconfigure puts cfg in force for the requests that come from now on, or changes
// nothing and says why. What a proxy is, and what it is made of, stays: the names,
// the key, the budget of bodies, the precise index, the logger and the metrics.
func (p *Proxy) Reconfigure(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("reconfigure proxy: %w", err)
	}
	was := &p.config().Config
	cfg.Node, cfg.Cluster, cfg.Version, cfg.Key = was.Node, was.Cluster, was.Version, was.Key
	cfg.BodyBudget, cfg.Knowledge = was.BodyBudget, was.Knowledge
	cfg.Logger, cfg.Registerer = was.Logger, was.Registerer
	p.current.Store(newCurrent(cfg))
	return nil
}

// namer turns a body into its name: the facts that routing needs, and the chain.
type namer struct {
	encoder cbr.Encoder
	hasher  chain.Hasher
	// x is the exchange that it names for, and resolver its resolve: made once,
	// since a method value is an allocation.
	x        *exchange
	resolver func(string) (string, *cbr.Rules, error)
}

func newNamer() *namer {
	n := new(namer)
	n.resolver = func(name string) (string, *cbr.Rules, error) { return n.x.resolveModel(name) }
	return n
}

// InFlight is the number of requests that are being served.
func (p *Proxy) InFlight() int64 { return p.inFlight.Load() }

// Ready is whether the first discovery of every backend is over.
func (p *Proxy) Ready() bool { return p.pool.Ready() }

// ServeHTTP serves one request of a client.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.begin(w, r)
	defer x.end()
	x.serve()
}

// resolve is the encoder's question about a model: what it is really called, and
// what stays out of its CBR. An unknown model is a 404 before anything else in
// the body is judged.
func (x *exchange) resolve(name string) (string, *cbr.Rules, error) {
	p, model := x.p, x.cfg.real(name)
	if _, known := p.pool.Model(model); known {
		if !x.permitted(model) {
			return "", nil, forbidden(name)
		}
		return model, x.cfg.rules(model), nil
	}
	if !p.pool.Ready() {
		return "", nil, unavailable("starting", "The gateway is still asking its backends which models they serve. Try again shortly.")
	}
	known := x.models()
	if len(known) == 0 { // a restart while the engines are down must not turn 503 into 404
		return "", nil, unavailable("no_backend", "No backend has said yet which models it serves. Try again shortly.")
	}
	return "", nil, unknownModel(name, known)
}

// real is the name that backends know a model by.
func (c *current) real(name string) string {
	if model, ok := c.Aliases[name]; ok {
		return model
	}
	return name
}

// rules are a model's own, else those for all models, nil for the built-in ones.
func (c *current) rules(model string) *cbr.Rules {
	if own := c.Rules[model]; own != nil {
		return own
	}
	return c.Rules[""]
}

// models are the names that clients may use, sorted.
func (c *current) models(pool *backend.Pool) []string {
	names := pool.Models()
	for alias, model := range c.Aliases {
		if _, known := pool.Model(model); known {
			names = append(names, alias)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
