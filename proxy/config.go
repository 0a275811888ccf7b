package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/proxy/record"
	"kvca/proxy/tenant"
	"kvca/state/cbr"
	"kvca/state/chain"
)

// Config configures a Proxy. Start from DefaultConfig.
type Config struct {
	// Node is this node's name, for the debug headers and the status.
	Node string
	// Cluster is the cluster's name.
	Cluster string
	// Version is the program's.
	Version string
	// Key is the hash key of the chain. It is secret: who knows it can probe
	// which prompts others have sent.
	Key chain.Key
	// MaxBodyBytes bounds one request's body. Too small refuses long prompts
	// with images, too large lets one client take much of BodyBudget. Default
	// 32 MiB.
	MaxBodyBytes int64
	// BodyBudget bounds the memory of all bodies in flight, held until the
	// answer has begun or failed for good. Beyond it requests get 503. Default
	// 1 GiB.
	BodyBudget int64
	// UploadIdle is how long a body may pause, UploadLimit how long it may take
	// in all. Too short cuts clients on poor links, too long lets slow ones
	// hold connections. Defaults 10 s and 5 min.
	UploadIdle, UploadLimit time.Duration
	// WriteIdle is how long a client may take none of the answer's bytes before
	// its connection is cut, and the backend of a WebSocket none of the client's.
	// Default 60 s.
	WriteIdle time.Duration
	// Attempts is how many backends a request may be tried on. Default 3.
	Attempts int
	// Aliases gives models other names: the name a client uses to the model's
	// own, which is what the backend is sent.
	Aliases map[string]string
	// Rules are the lists of what stays out of the CBR, per model, where they
	// differ from the built-in one; those under "" are for all models without
	// their own.
	Rules map[string]*cbr.Rules
	// Fallbacks are, for a model's own name, other models that answer in its place
	// while none of its backends can, in order. Their answers say so in X-KVCA-Model.
	Fallbacks map[string][]string
	// AllowedOrigins are the origins whose pages may use the API from a browser, such
	// as https://chat.example.com, or * for all. None: what backends say of it passes.
	AllowedOrigins []string
	// MaxSockets is how many WebSockets may be open or on their way to be. Each holds
	// two connections and 64 KiB. Default 1024.
	MaxSockets int
	// SocketIdle is how long a WebSocket may be quiet. Too short cuts people who think,
	// too long keeps those whose network is gone. Default 10 min.
	SocketIdle time.Duration
	// Paths are further engine paths that are passed through.
	Paths []string
	// TrustedProxies may set X-Forwarded-For, -Proto and -Host; from anyone else
	// these are replaced.
	TrustedProxies []netip.Prefix
	// Tenants knows clients by their keys; nil serves everyone.
	Tenants Tenants
	// Limiter holds tenants to their limits; nil: they have none.
	Limiter *tenant.Limiter
	// Steering is what is done with fields that steer engines.
	Steering Steering
	// MaxActive is how many requests a backend of weight 1 should have at the same
	// time. Beyond it, over all backends of a model, requests wait in Queue. 0: none
	// waits. Less than an engine runs at once wastes it, much more lets a flood
	// queue up in the engine, where nobody can be preferred.
	MaxActive int
	// Queue is where they wait; nil: nowhere.
	Queue *tenant.Queue
	// EnginePriority tells engines each request's priority, 0 or 100, as the
	// tenant's is, in the header X-Gateway-Priority.
	EnginePriority bool
	// Observers are told of each request that has ended.
	Observers []record.Observer
	// WantsDetail is whether the next decision should list its candidates for
	// observers; nil for never.
	WantsDetail func() bool
	// Tracer makes a span of each request; nil for none.
	Tracer record.Tracer
	// Knowledge is the precise index; nil for none.
	Knowledge *Knowledge
	// DebugHeaders adds X-KVCA-* headers to answers.
	DebugHeaders bool
	// Logger takes events; per-request lines are at debug level.
	Logger *slog.Logger
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
}

// DefaultConfig is what `kvca serve` starts from.
func DefaultConfig() Config {
	return Config{
		Node: "kvca", Cluster: chain.DefaultClusterName, Version: "dev",
		Key:          chain.DeriveKey(chain.DefaultClusterName),
		MaxBodyBytes: 32 << 20, BodyBudget: 1 << 30,
		UploadIdle: 10 * time.Second, UploadLimit: 5 * time.Minute, WriteIdle: time.Minute,
		Attempts: 3, MaxSockets: 1024, SocketIdle: 10 * time.Minute,
		Logger: slog.Default(),
	}
}

// Validate returns all faults at once.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.MaxBodyBytes < 1<<10 || c.MaxBodyBytes > 1<<38 {
		fault("max_body_bytes: %d is not between 1 KiB and 256 GiB", c.MaxBodyBytes)
	}
	if c.BodyBudget < c.MaxBodyBytes {
		fault("body_budget: %d is less than max_body_bytes, %d: no body of that size could pass", c.BodyBudget, c.MaxBodyBytes)
	}
	if c.UploadIdle <= 0 || c.UploadLimit < c.UploadIdle {
		fault("upload_idle %v must be above zero and upload_limit %v not below it", c.UploadIdle, c.UploadLimit)
	}
	if c.WriteIdle <= 0 {
		fault("write_idle: %v must be above zero", c.WriteIdle)
	}
	if c.MaxActive < 0 {
		fault("max_active: %d must not be negative", c.MaxActive)
	}
	if c.Attempts < 1 {
		fault("attempts: %d must be at least 1", c.Attempts)
	}
	for alias, model := range c.Aliases {
		if alias == "" || model == "" {
			fault("alias %q=%q: both names must be there", alias, model)
		}
		if _, again := c.Aliases[model]; again {
			fault("alias %q=%q: %q is an alias itself; name the model", alias, model, model)
		}
	}
	if c.MaxSockets < 0 || c.SocketIdle <= 0 {
		fault("max_websockets %d must not be negative and websocket_idle %v must be above zero", c.MaxSockets, c.SocketIdle)
	}
	faults = append(faults, c.fallbackFaults(), c.originFaults())
	for _, path := range c.Paths {
		if path == "" || path[0] != '/' {
			fault("path %q: must begin with /", path)
		}
	}
	return errors.Join(faults...)
}
