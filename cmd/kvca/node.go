package main

import (
	"context"
	"errors"
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

	"kvca/proxy"
	"kvca/proxy/backend"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/ledger"
)

// node is one gateway with all its parts: make it with newNode, give it its life
// with Run. Its listeners are open from the beginning, so addresses with port 0
// are known, and an address that is taken is an error before anything runs.
type node struct {
	settings *settings
	log      *slog.Logger

	clientListener, adminListener net.Listener
	client, admin                 *http.Server
	visitors, adminVisitors       visitors

	locations *blockmap.Map
	loads     *ledger.Ledger
	router    *router.Router
	pool      *backend.Pool
	proxy     *proxy.Proxy
	engines   []*embedded

	draining atomic.Bool
	close    sync.Once
}

// newNode assembles a node, which leaves s as it is. The caller runs it, or closes
// it.
func newNode(s *settings, log *slog.Logger) (*node, error) {
	own := *s
	n := &node{settings: &own, log: log}
	for _, step := range []func() error{n.listen, n.openEngines, n.assemble} {
		if err := step(); err != nil {
			n.Close()
			return nil, err
		}
	}
	return n, nil
}

// ClientURL is where clients reach the node.
func (n *node) ClientURL() string { return "http://" + n.clientListener.Addr().String() }

// AdminURL is where the admin API is.
func (n *node) AdminURL() string { return "http://" + n.adminListener.Addr().String() }

func (n *node) listen() (err error) {
	if n.clientListener, err = listen("listen", n.settings.listen); err != nil {
		return err
	}
	n.adminListener, err = listen("admin", n.settings.admin)
	return err
}

// listen opens an address. The system's error names it already.
func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open --%s: %w", flag, err)
	}
	return l, nil
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

// assemble makes the parts, from the core outwards.
func (n *node) assemble() (err error) {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s := n.settings
	s.router.Registerer, s.pool.Registerer, s.proxy.Registerer = metrics, metrics, metrics
	s.pool.Logger, s.proxy.Logger = n.log, n.log

	n.loads = ledger.New()
	if n.locations, err = blockmap.New(s.blocks); err != nil {
		return err
	}
	if n.router, err = router.New(s.router, router.LocalLoads(n.loads, s.proxy.Node), n.locations); err != nil {
		return err
	}
	if n.pool, err = backend.NewPool(s.pool, n.router); err != nil {
		return err
	}
	if n.proxy, err = proxy.New(s.proxy, n.router, n.pool); err != nil {
		return err
	}
	if err = n.proxy.RegisterState(metrics, n.locations, n.loads); err != nil {
		return err
	}
	n.client = proxy.NewHTTPServer(n.visitors.count(n.proxy), n.log)
	n.admin = proxy.NewHTTPServer(n.adminVisitors.count(proxy.NewAdmin(proxy.AdminConfig{
		Proxy: n.proxy, Map: n.locations, Ledger: n.loads, Gatherer: metrics,
		Draining: n.draining.Load, Client: n.clientListener.Addr().String(), Admin: n.adminListener.Addr().String(),
		Boot: strconv.FormatInt(time.Now().UnixNano(), 36),
	})), n.log)
	return nil
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
	failed := make(chan error, 2)
	work.Go(func() { failed <- serveHTTP("admin", n.admin, n.adminListener) })
	work.Go(func() { failed <- serveHTTP("listen", n.client, n.clientListener) })
	n.log.Info("serving", "clients", n.ClientURL(), "admin", n.AdminURL(), "node", n.settings.proxy.Node,
		"cluster", n.settings.proxy.Cluster, "backends", len(n.pool.All()), "version", n.settings.proxy.Version)
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
	if len(list) == 0 {
		n.log.Warn("no backends: add some with --backend, with --simulate, or by POST " + n.AdminURL() + "/backends")
	}
	return nil
}

func serveHTTP(flag string, s *http.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve --%s: %w", flag, err)
	}
	return nil
}

// Close ends everything at once. It is for a node that was not run; Run does it
// by itself.
func (n *node) Close() {
	n.close.Do(func() {
		for _, s := range []*http.Server{n.client, n.admin} {
			if s != nil {
				s.Close() // what it may fail with is a listener that is closed
			}
		}
		for _, l := range []net.Listener{n.clientListener, n.adminListener} {
			if l != nil {
				l.Close()
			}
		}
		n.visitors.wait(handlerGrace)
		n.adminVisitors.wait(handlerGrace)
		if n.pool != nil {
			n.pool.Close()
		}
		for _, e := range n.engines {
			e.listener.Close()
		}
	})
}
