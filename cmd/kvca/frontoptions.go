package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"kvca/proxy"
	"kvca/proxy/discovery"
	"kvca/proxy/steer"
	"kvca/proxy/tenant"
)

// frontSettings are who may reach the node, and how.
type frontSettings struct {
	// listenTLS and adminTLS are of the listeners of those names.
	listenTLS, adminTLS tlsFiles
	adminToken          string
	keys                string // file
	trusted             string // address of the listener for trusted clients
	proxyProtocol       []netip.Prefix
	maxConnections      int
	steering            string
	steeringFields      []string
	queue               tenant.QueueConfig
	discover            []string
}

// tlsFiles are the certificate of a listener, its key, and who signs clients'.
type tlsFiles struct{ cert, key, clientCA string }

// Words of --steering.
const (
	steeringPass   = "pass"
	steeringStrip  = "strip"
	steeringRefuse = "refuse"
)

func frontOptions() []*option {
	list := append(tlsOptions("tls", "the client API", func(s *settings) *tlsFiles { return &s.front.listenTLS }),
		tlsOptions("admin-tls", "the admin API", func(s *settings) *tlsFiles { return &s.front.adminTLS })...)
	return append(list, []*option{
		{
			name: "admin-token-file", value: "FILE", shown: "none",
			usage: "file with the token that the admin API asks for as a bearer token, but for /healthz and /readyz; read again when it changes",
			set:   text(func(s *settings) *string { return &s.front.adminToken }, notEmpty),
		},
		{
			name: "keys-file", value: "FILE", shown: "none: everyone is served",
			usage: "file with the tenants, the hashes of their API keys and their limits; read again when it changes",
			set:   text(func(s *settings) *string { return &s.front.keys }, notEmpty),
		},
		{
			name: "trusted-listen", value: "HOST:PORT", shown: "none",
			usage: "where clients are served without a key, and may steer engines; keep everyone else away from it",
			set:   text(func(s *settings) *string { return &s.front.trusted }, checkAddress),
		},
		{
			name: "steering", value: "WHAT", def: steeringPass, live: true,
			usage: "what is done with fields of clients by which they steer engines past the gateway (kv_transfer_params, input_ids, chat_template and others): pass, strip, or refuse with 403",
			set: text(func(s *settings) *string { return &s.front.steering }, func(v string) error {
				return oneOf(v, steeringPass, steeringStrip, steeringRefuse)
			}),
		},
		{
			name: "steering-field", value: "FIELD", repeats: true, live: true,
			usage: "further top-level field that steers engines; a trailing * stands for any ending",
			set: func(s *settings, v string) error {
				s.front.steeringFields = append(s.front.steeringFields, v)
				if v == "" || v == "*" {
					return fmt.Errorf("%q is no field: want a name such as cache_salt, or one that ends in *", v)
				}
				return nil
			},
		},
		{
			name: "engine-priority", live: true, usage: "tell engines each request's priority, as the tenant's is, in X-Gateway-Priority",
			set: toggle(func(s *settings) *bool { return &s.proxy.EnginePriority }),
		},
		{
			name: "proxy-protocol", value: "CIDR", repeats: true,
			usage: "network of load balancers that say by the PROXY protocol who the client is",
			set: func(s *settings, v string) error {
				prefix, err := readPrefix(v)
				s.front.proxyProtocol = append(s.front.proxyProtocol, prefix)
				return err
			},
		},
		{
			name: "max-client-connections", value: "N", def: "0", usage: "bound on the connections of clients; beyond it they wait to be accepted; 0 for none",
			set: number(readCount, func(s *settings) *int { return &s.front.maxConnections }, 0, 1<<24),
		},
		{
			name: "max-active", value: "N", def: "0", live: true,
			usage: "requests that a backend of weight 1 should have at once; beyond it, over all backends of a model, requests wait their turn here; 0: none waits",
			set:   number(readCount, func(s *settings) *int { return &s.proxy.MaxActive }, 0, 1<<20),
		},
		{
			name: "queue-size", value: "N", def: "1024", usage: "requests that may wait for their turn at this node",
			set: number(readCount, func(s *settings) *int { return &s.front.queue.MaxWaiting }, 1, 16384),
		},
		{
			name: "queue-bytes", value: "SIZE", def: "256MiB", usage: "bound on the memory of the bodies that wait",
			set: sizeBetween(func(s *settings) *int64 { return &s.front.queue.MaxBytes }, 1<<20, 1<<40),
		},
		{
			name: "queue-wait", value: "DURATION", def: "30s", usage: "how long a request may wait for its turn",
			set: durationBetween(func(s *settings) *time.Duration { return &s.front.queue.MaxWait }, time.Millisecond, time.Hour),
		},
	}...)
}

func tlsOptions(prefix, of string, at func(*settings) *tlsFiles) []*option {
	return []*option{
		{
			name: prefix + "-cert", value: "FILE", shown: "none: no TLS", usage: "certificate of " + of + " and its chain, in PEM; read again when it changes",
			set: text(func(s *settings) *string { return &at(s).cert }, notEmpty),
		},
		{
			name: prefix + "-key", value: "FILE", shown: "none", usage: "its key",
			set: text(func(s *settings) *string { return &at(s).key }, notEmpty),
		},
		{
			name: prefix + "-client-ca", value: "FILE", shown: "none", usage: "certificates that those of clients must be signed by; without it clients need none",
			set: text(func(s *settings) *string { return &at(s).clientCA }, notEmpty),
		},
	}
}

func discoveryOptions() []*option {
	return []*option{
		{
			name: "discover", value: "SPEC", repeats: true,
			usage: "where backends are found: file:PATH, dns://NAME:PORT, srv://NAME, or k8s://[NAMESPACE/]SERVICE[:PORT]; what all have in common follows as ?KEY=VALUE",
			set: func(s *settings, v string) error {
				s.front.discover = append(s.front.discover, v)
				_, err := discovery.Parse(v, discovery.Options{})
				return err
			},
		},
		{
			name: "zone", value: "NAME", shown: "none", usage: "where this node runs; backends of another zone cost --cross-zone-cost more",
			set: text(func(s *settings) *string { return &s.pool.Zone }, notEmpty),
		},
		{
			name: "cross-zone-cost", value: "BYTES", def: "4096", usage: "what a backend of another zone costs besides, in bytes of prompt",
			set: number(readFloat, func(s *settings) *float64 { return &s.router.Cost.CrossZone }, 0, 1<<40),
		},
	}
}

func notEmpty(v string) error {
	if strings.TrimSpace(v) == "" {
		return errors.New("is empty: want a name")
	}
	return nil
}

// finish checks what hangs together, and makes what the proxy goes by.
func (f *frontSettings) finish(s *settings) (faults []error) {
	for prefix, t := range map[string]tlsFiles{"tls": f.listenTLS, "admin_tls": f.adminTLS} {
		if (t.cert == "") != (t.key == "") {
			faults = append(faults, fmt.Errorf("%s_cert: a certificate and its key go together: want both or neither", prefix))
		}
		if t.clientCA != "" && t.cert == "" {
			faults = append(faults, fmt.Errorf("%s_client_ca: there is no TLS to ask for certificates: want %s_cert and %s_key too", prefix, prefix, prefix))
		}
	}
	s.proxy.Steering = proxy.Steering{Headers: f.steering != steeringPass}
	fields := append(steer.DefaultFields(), f.steeringFields...)
	switch f.steering {
	case steeringStrip:
		s.proxy.Steering.Strip = fields
	case steeringRefuse:
		s.proxy.Steering.Refuse = fields
	}
	f.queue.MaxBytes = min(f.queue.MaxBytes, max(s.proxy.BodyBudget/2, 1))
	return faults
}
