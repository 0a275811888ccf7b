package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"kvca/proxy"
	"kvca/proxy/backend"
	"kvca/proxy/discovery"
	"kvca/proxy/engine/prompt"
	"kvca/proxy/engine/readers"
	"kvca/proxy/tenant"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/kvindex"
	"kvca/state/ledger"
)

// node is one gateway with all its parts: make it with newNode, give it its life
// with Run. Its listeners are open from the beginning, so addresses with port 0
// are known, and an address that is taken is an error before anything runs.
type node struct {
	settings *settings
	log      *slog.Logger

	front    front
	watchers watchers

	metrics   *prometheus.Registry
	locations *blockmap.Map
	loads     *ledger.Ledger
	peers     *peers // nil for a node that has none
	router    *router.Router
	pool      *backend.Pool
	proxy     *proxy.Proxy
	index     *kvindex.Index
	prompts   *prompt.Service
	knowledge *proxy.Knowledge
	reader    *readers.Reader
	engines   []*embedded

	keeper *discovery.Keeper // nil where backends are not looked for

	// live are the settings in force: settings, but for what a reload has changed.
	live    atomic.Pointer[settings]
	level   *slog.LevelVar // of the log; nil for one that stays
	reloads *prometheus.CounterVec

	boot     uint64 // of this run of the process
	draining atomic.Bool
	close    sync.Once
}

// newNode assembles a node, which leaves s as it is. The caller runs it, or closes
// it.
func newNode(s *settings, log *slog.Logger) (*node, error) {
	own := *s
	n := &node{settings: &own, log: log, boot: uint64(time.Now().UnixNano())}
	n.live.Store(n.settings)
	for _, step := range []func() error{n.openMetrics, n.openFront, n.openEngines, n.openState, n.openPeers, n.assemble} {
		if err := step(); err != nil {
			n.Close()
			return nil, err
		}
	}
	return n, nil
}

// ClientURL is where clients reach the node.
func (n *node) ClientURL() string { return n.front.of("listen").url() }

// AdminURL is where the admin API is.
func (n *node) AdminURL() string { return n.front.of("admin").url() }

func (n *node) openMetrics() error {
	n.metrics = prometheus.NewRegistry()
	n.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	n.reloads = promauto.With(n.metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "kvca_config_reload_total", Help: "Reloads of the configuration by result: ok, error.",
	}, []string{"result"})
	return nil
}

func (n *node) openEngines() error {
	for i := range n.settings.simulate {
		e, err := newEmbedded(i, n.settings)
		if err != nil {
			return err
		}
		n.engines = append(n.engines, e)
	}
	return nil
}

// openState makes the core.
func (n *node) openState() (err error) {
	n.loads = ledger.New()
	if n.locations, err = blockmap.New(n.settings.blocks); err != nil {
		return err
	}
	n.settings.proxy.Queue = tenant.NewQueue(n.settings.front.queue, n.metrics)
	n.index, err = kvindex.New(kvindex.Config{Key: n.settings.proxy.Key, MaxBytes: n.settings.index.maxBytes})
	return err
}

// assemble makes the parts around the core, outwards.
func (n *node) assemble() (err error) {
	s := n.settings
	s.router.Registerer, s.pool.Registerer, s.proxy.Registerer = n.metrics, n.metrics, n.metrics
	s.pool.Logger, s.proxy.Logger = n.log, n.log
	if n.router, err = router.New(s.router, n.routerLoads(), n.routerLocations()); err != nil {
		return err
	}
	n.openReader()
	if n.pool, err = n.openPool(); err != nil {
		return err
	}
	if err = n.openKnowledge(); err != nil {
		return err
	}
	s.proxy.Limiter = tenant.NewLimiter(n.quotas(), n.metrics)
	if err = n.openWatchers(); err != nil {
		return err
	}
	if n.proxy, err = proxy.New(s.proxy, n.router, n.pool); err != nil {
		return err
	}
	if err = n.openDiscovery(); err != nil {
		return err
	}
	if n.peers != nil {
		s.proxy.Queue.Share(n.peers.Turns(), n.proxy.Room)
	}
	if err = n.proxy.RegisterState(n.metrics, n.locations, n.loads); err != nil {
		return err
	}
	if err = n.proxy.RegisterIndex(n.metrics, n.sources); err != nil {
		return err
	}
	if n.peers != nil {
		if err = n.proxy.RegisterCluster(n.metrics, n.peers); err != nil {
			return err
		}
	}
	return n.furnish()
}

// openDiscovery makes what finds backends, where there is something to look at.
func (n *node) openDiscovery() error {
	var sources []discovery.Source
	for _, spec := range n.settings.front.discover {
		source, err := discovery.Parse(spec, discovery.Options{Logger: n.log})
		if err != nil {
			return fmt.Errorf("--discover: %w", err)
		}
		sources = append(sources, source)
	}
	if len(sources) > 0 {
		n.keeper = discovery.NewKeeper(n.pool, sources, n.log, n.metrics)
		n.keeper.DrainTimeout = n.settings.drainTimeout
	}
	return nil
}

// withHealth also answers at the clients' address what load balancers ask: they look
// where they send.
func withHealth(clients, admin http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" || r.URL.Path == "/healthz" {
			admin.ServeHTTP(w, r)
			return
		}
		clients.ServeHTTP(w, r)
	})
}

// furnish gives every listener what it serves.
func (n *node) furnish() error {
	admin, err := n.guard(proxy.NewAdmin(n.adminConfig()))
	if err != nil {
		return err
	}
	served := map[string]http.Handler{"listen": withHealth(n.proxy, admin), "admin": admin, "trusted-listen": withHealth(n.proxy.Trusted(), admin)}
	for _, l := range n.front.listeners {
		l.handle(served[l.flag], n)
	}
	return nil
}

func (n *node) adminConfig() proxy.AdminConfig {
	c := proxy.AdminConfig{
		Proxy: n.proxy, Map: n.locations, Ledger: n.loads, Gatherer: n.metrics,
		Sources: n.sources, Live: n.watchers.live, Awaits: n.awaits, Draining: n.draining.Load, Boot: bootName(n.boot),
		Client: n.shown("listen"), Admin: n.shown("admin"),
	}
	if n.peers != nil {
		c.Cluster = n.peers
	}
	return c
}

// awaits is whether it is still looked for the first backends.
func (n *node) awaits() bool { return n.keeper != nil && !n.keeper.Ready() }

// bootName is how people see the number of a process's run.
func bootName(boot uint64) string { return strconv.FormatUint(boot, 10) }

// shown is a listener's address as others may use it, as far as is known.
func (n *node) shown(flag string) string {
	address := n.front.of(flag).Addr().String()
	host := n.settings.cluster.advertise
	if _, port, err := net.SplitHostPort(address); err == nil && host != "" && isUnspecified(address) {
		return net.JoinHostPort(host, port)
	}
	return address
}

// Run serves until ctx ends, then drains, and returns when nothing of the node
// is left. It returns nil after a drain, even one that its time limit has cut.
func (n *node) Run(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	defer n.Close()
	for _, e := range n.engines {
		work.Go(func() { e.serve(background, n.log) })
	}
	if err := n.addBackends(); err != nil {
		return err
	}
	work.Go(func() { n.router.Run(background) })
	work.Go(func() { n.know(background) })
	work.Go(func() { n.watchers.live.Run(background) })
	work.Go(func() { n.follow(background) })
	if n.keeper != nil {
		work.Go(func() { n.keeper.Run(background) })
	}
	for _, follow := range n.front.follows {
		work.Go(func() { follow(background) })
	}
	failed := make(chan error, 1+len(n.front.listeners))
	if n.peers != nil {
		work.Go(func() { failed <- n.peers.run(background) })
	}
	for _, l := range n.front.listeners {
		work.Go(func() { failed <- l.serve() })
	}
	n.log.Info("serving", "clients", n.ClientURL(), "admin", n.AdminURL(), "node", n.settings.proxy.Node,
		"cluster", n.settings.proxy.Cluster, "gossip", n.gossip(), "backends", len(n.pool.All()), "version", n.settings.proxy.Version)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		n.drain(failed)
		return nil
	}
}

// addBackends makes the backends known before the first client is served.
func (n *node) addBackends() error {
	list := n.settings.backends
	for _, e := range n.engines {
		list = append(list, e.config())
	}
	for _, c := range list {
		if err := n.pool.Add(c); err != nil {
			return err
		}
	}
	if len(list) == 0 && n.keeper == nil && !(n.peers != nil && n.settings.learns()) {
		n.log.Warn("no backends: add some with --backend, --discover or --simulate, or by POST " + n.AdminURL() + "/backends")
	}
	return nil
}

// Close ends everything at once. It is for a node that was not run; Run does it
// by itself.
func (n *node) Close() {
	n.close.Do(func() {
		for _, l := range n.front.listeners {
			l.close()
		}
		if n.proxy != nil {
			n.proxy.CutSockets()
		}
		for _, l := range n.front.listeners {
			l.visitors.wait(handlerGrace)
		}
		if n.prompts != nil {
			n.prompts.Close()
		}
		if n.pool != nil {
			n.pool.Close()
		}
		if n.peers != nil {
			n.peers.close()
		}
		for _, e := range n.engines {
			e.close()
		}
		n.watchers.close()
	})
}
