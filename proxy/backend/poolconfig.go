package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// PoolConfig says how backends are watched and connected to. A zero value of a
// field means its default, unless the field says otherwise.
type PoolConfig struct {
	// HealthInterval is the time between two health checks of a backend that is
	// up. Default 2 s. Shorter costs processor time on both sides; longer sends
	// more requests to an engine whose port is open and whose core is dead.
	HealthInterval time.Duration

	// HealthTimeout bounds one check. Default 2 s. Shorter takes busy engines for
	// dead ones; longer delays the verdict on one that hangs. A backend that has
	// begun an answer since the last check is not blamed for a late one.
	HealthTimeout time.Duration

	// ScrapeInterval is the time between two readings of the metrics of a backend
	// that works. Default 1 s. An idle backend is read ever less often, down to
	// every eighth health check. Shorter costs up to 0.3 ms of processor time a
	// reading; longer lets traffic that bypasses the gateway go unseen.
	ScrapeInterval time.Duration

	// ConnectTimeout bounds name lookup, connect and TLS handshake, each. Default
	// 2 s. Shorter fails over distant links; longer keeps a request waiting on a
	// host that is gone.
	ConnectTimeout time.Duration

	// HeaderTimeout bounds the wait for response headers. Default 0: none, since a
	// queued prefill may take minutes. Any bound cuts off the longest prompts
	// first.
	HeaderTimeout time.Duration

	// UpgradeTimeout bounds the wait for the answer to a WebSocket's handshake.
	// Default 10 s: no prefill comes before it. Longer lets a backend that never
	// answers hold places among the WebSockets.
	UpgradeTimeout time.Duration

	// IdleTimeout is how long a connection to a backend is kept unused. Default
	// 4 s. At or above the engine's own keep-alive (5 s in uvicorn) requests meet
	// connections that the engine is closing; far below it, light traffic
	// connects anew for each request.
	IdleTimeout time.Duration

	// MaxConns bounds the connections to one backend. Default 1024. A request that
	// finds none free waits, as long as its context lasts; too many let one slow
	// engine exhaust the gateway's file descriptors.
	MaxConns int

	// BreakerFailures is how many failures in a row open a backend's breaker.
	// Default 3. With 1 a single bad answer ejects a backend; with many a broken
	// engine answers as many clients with errors.
	BreakerFailures int

	// SlowStart is the time in which a backend that returns from an outage grows
	// from a tenth of its weight to the whole. Default 10 s; negative: none. Its
	// cache is empty: at once, and the whole queue falls on it; too slow, and the
	// others carry its share for longer than they need to.
	SlowStart time.Duration

	// DiscoveryTimeout bounds the first look at a backend, for which readiness
	// waits. Default 3 s. Shorter may answer 404 for models that a slow engine
	// serves; longer delays the node's start by a backend that is down.
	DiscoveryTimeout time.Duration

	// Zone is where this node runs. Backends of another zone are marked as remote, for
	// policies that spare the way there. Default: none, and none is remote.
	Zone string

	// Dial connects to backends. Default: TCP with keep-alive. Backends inside the
	// process, and tests, put theirs here.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// OnChange is called after a backend came or went, or its health changed, from
	// any goroutine and without a lock held. It must return at once. Default: none.
	OnChange func()

	// Logger gets one line per event that an operator would act on. Default: none.
	Logger *slog.Logger

	// Registerer gets the pool's metrics. Default: none.
	Registerer prometheus.Registerer
}

func (c PoolConfig) withDefaults() PoolConfig {
	duration := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	duration(&c.HealthInterval, 2*time.Second)
	duration(&c.HealthTimeout, 2*time.Second)
	duration(&c.ScrapeInterval, time.Second)
	duration(&c.ConnectTimeout, 2*time.Second)
	duration(&c.UpgradeTimeout, 10*time.Second)
	duration(&c.IdleTimeout, 4*time.Second)
	duration(&c.SlowStart, 10*time.Second)
	duration(&c.DiscoveryTimeout, 3*time.Second)
	if c.MaxConns == 0 {
		c.MaxConns = 1024
	}
	if c.BreakerFailures == 0 {
		c.BreakerFailures = 3
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: c.ConnectTimeout, KeepAliveConfig: keepAlive}).DialContext
	}
	if c.OnChange == nil {
		c.OnChange = func() {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports every fault of the configuration at once.
func (c PoolConfig) Validate() error {
	c = c.withDefaults()
	var faults []error
	atLeast := func(key string, d, least time.Duration) {
		if d < least {
			faults = append(faults, fmt.Errorf("%s: %v is too short: want %v or more, or 0 for the default", key, d, least))
		}
	}
	atLeast("health_interval", c.HealthInterval, 10*time.Millisecond)
	atLeast("health_timeout", c.HealthTimeout, 10*time.Millisecond)
	atLeast("scrape_interval", c.ScrapeInterval, 10*time.Millisecond)
	atLeast("connect_timeout", c.ConnectTimeout, time.Millisecond)
	atLeast("header_timeout", c.HeaderTimeout, 0)
	atLeast("upgrade_timeout", c.UpgradeTimeout, time.Millisecond)
	atLeast("idle_timeout", c.IdleTimeout, time.Millisecond)
	atLeast("discovery_timeout", c.DiscoveryTimeout, 10*time.Millisecond)
	if c.MaxConns < 1 {
		faults = append(faults, fmt.Errorf("max_conns: %d: want 1 or more, or 0 for the default", c.MaxConns))
	}
	if c.BreakerFailures < 1 {
		faults = append(faults, fmt.Errorf("breaker_failures: %d: want 1 or more, or 0 for the default", c.BreakerFailures))
	}
	return errors.Join(append(faults, checkZone(c.Zone))...)
}
