package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/proxy/backend"
	"kvca/proxy/live"
	"kvca/proxy/page"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/ledger"
)

// AdminConfig is what the admin API shows and changes.
type AdminConfig struct {
	Proxy  *Proxy
	Map    *blockmap.Map
	Ledger *ledger.Ledger
	// Gatherer gives the metrics.
	Gatherer prometheus.Gatherer
	// Live is what the page shows of the last minutes; nil for no page.
	Live *live.Live
	// Awaits is whether the node still looks for its first backends; nil for no.
	Awaits func() bool
	// Draining is whether the node is on its way out: it then reports not ready.
	Draining func() bool
	// Cluster is the cluster that the node is in; nil for a node that is alone.
	Cluster Cluster
	// Sources lists who tells the precise index what; nil for nobody.
	Sources func() []IndexSource
	// Client and Admin are where the node serves.
	Client, Admin string
	// Boot identifies this run of the process.
	Boot string
}

// admin serves the admin API. It must not be reachable for clients.
type admin struct {
	AdminConfig
	pool *backend.Pool
}

// NewAdmin makes the handler of the admin listener.
func NewAdmin(c AdminConfig) http.Handler {
	a := &admin{AdminConfig: c, pool: c.Proxy.pool}
	if a.Cluster == nil {
		a.Cluster = &alone{Member{Name: c.Proxy.config().Node, State: "alive", Boot: c.Boot, Link: "self", Client: c.Client, Admin: c.Admin}, a.pool}
	}
	if a.Sources == nil {
		a.Sources = func() []IndexSource { return nil }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.Handle("GET /metrics", metricsHandler(c.Gatherer))
	mux.HandleFunc("GET /cluster/status", a.status)
	mux.HandleFunc("GET /backends", a.backends)
	mux.HandleFunc("POST /backends", a.addBackend)
	mux.HandleFunc("DELETE /backends/{id}", a.change(a.remove))
	mux.HandleFunc("POST /backends/{id}/drain", a.change(a.drain))
	mux.HandleFunc("POST /backends/{id}/undrain", a.change(a.undrain))
	mux.HandleFunc("POST /explain", a.explain)
	mux.HandleFunc("GET /internal/kv-index", a.kvIndex)
	if c.Live != nil {
		mux.HandleFunc("GET /live", c.Live.ServeLive)
		mux.HandleFunc("GET /decisions", c.Live.ServeDecisions)
		mux.Handle("GET /{$}", page.Handler())
		mux.Handle("GET /page/", page.Handler())
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	// A web page that an operator looks at must not change anything here.
	return http.NewCrossOriginProtection().Handler(mux)
}

// healthz is for a supervisor: the process serves.
func (a *admin) healthz(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }

// ready is for a load balancer: this node may be sent requests.
func (a *admin) ready() bool {
	return a.Proxy.Ready() && (a.Awaits == nil || !a.Awaits()) && (a.Draining == nil || !a.Draining()) && a.Cluster.Ready()
}

func (a *admin) readyz(w http.ResponseWriter, _ *http.Request) {
	if !a.ready() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready\n")
}

// adminError answers errors of the admin API, in the shape of the client's.
func adminError(w http.ResponseWriter, status int, code, message string) {
	(&apiError{status: status, code: code, message: message}).write(w, openAIStyle, "")
}

func (a *admin) backends(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"backends": a.pool.Status()})
}

// maxAdminBody bounds what is read of a request to the admin API, /explain apart.
const maxAdminBody = 1 << 20

func (a *admin) addBackend(w http.ResponseWriter, r *http.Request) {
	var c struct {
		ID          string   `json:"id"`
		URL         string   `json:"url"`
		Weight      float64  `json:"weight"`
		Models      []string `json:"models"`
		CacheTokens int      `json:"cache_tokens"`
		Events      string   `json:"events"`
		Zone        string   `json:"zone"`
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAdminBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		adminError(w, http.StatusBadRequest, "invalid_json", `Expected {"id","url","weight"}: `+err.Error()+".")
		return
	}
	err := a.add(backend.Config{ID: c.ID, URL: c.URL, Weight: c.Weight, Models: c.Models, CacheTokens: c.CacheTokens, Events: c.Events, Zone: c.Zone})
	switch {
	case errors.Is(err, backend.ErrExists):
		adminError(w, http.StatusConflict, "backend_exists", err.Error())
	case err != nil:
		adminError(w, http.StatusBadRequest, "invalid_backend", err.Error())
	default:
		writeJSON(w, http.StatusCreated, map[string]string{"url": c.URL, "state": "added"})
	}
}

// change applies one of the pool's changes to the backend that the path names.
func (a *admin) change(f func(id string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := f(r.PathValue("id"))
		switch {
		case errors.Is(err, backend.ErrUnknown):
			adminError(w, http.StatusNotFound, "backend_not_found", err.Error())
		case err != nil:
			adminError(w, http.StatusInternalServerError, "internal_error", err.Error())
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}
}

// add takes a backend in, here and at the peers. One that they can't be told of is
// not added here either.
func (a *admin) add(c backend.Config) error {
	c, err := c.Complete()
	if err != nil {
		return err
	}
	if err := a.pool.Add(c); err != nil {
		return err
	}
	if err := a.Cluster.Added(c); err != nil {
		return errors.Join(err, a.pool.Drop(c.ID))
	}
	return nil
}

// remove ends a backend, here and at the peers. They are told first, or one that
// they were given would be back at once.
func (a *admin) remove(id string) error {
	if !slices.ContainsFunc(a.pool.All(), func(b *router.Backend) bool { return b.ID == id }) {
		return fmt.Errorf("remove backend %s: %w", id, backend.ErrUnknown)
	}
	a.Cluster.Removed(id)
	if err := a.pool.Drop(id); !errors.Is(err, backend.ErrUnknown) { // the peers' way back may have been faster
		return err
	}
	return nil
}

// drain takes a backend out of service, here and at the peers.
func (a *admin) drain(id string) error {
	err := a.pool.Drain(id)
	if err == nil {
		a.Cluster.Drained(id, true)
	}
	return err
}

func (a *admin) undrain(id string) error {
	err := a.pool.Undrain(id)
	if err == nil {
		a.Cluster.Drained(id, false)
	}
	return err
}
