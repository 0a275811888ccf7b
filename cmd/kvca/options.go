package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kvca/bench/engine"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/chain"
)

// day bounds durations that nobody means to be longer.
const day = 24 * time.Hour

// options is everything that can be set, once: flags, variables, keys of the
// file and the documentation are made from it.
func options() []*option {
	groups := [][]*option{
		addressOptions(), frontOptions(), clusterOptions(), backendOptions(), discoveryOptions(), routingOptions(), indexOptions(), requestOptions(), lifeOptions(), watchOptions(), simulateOptions(),
	}
	var list []*option
	for _, group := range groups {
		list = append(list, group...)
	}
	return list
}

func addressOptions() []*option {
	return []*option{
		{
			name: "listen", value: "HOST:PORT", def: "127.0.0.1:8080", usage: "where clients are served",
			set: text(func(s *settings) *string { return &s.listen }, checkAddress),
		},
		{
			name: "admin", value: "HOST:PORT", def: "127.0.0.1:8081",
			usage: "where status, metrics and changes to backends are served; keep clients away from it",
			set:   text(func(s *settings) *string { return &s.admin }, checkAddress),
		},
		{
			name: "node-name", value: "NAME", shown: "the host's name", usage: "this node's name in the cluster",
			set: text(func(s *settings) *string { return &s.proxy.Node }, checkName),
		},
		{
			name: "cluster-name", value: "NAME", def: chain.DefaultClusterName, usage: "the cluster's name",
			set: text(func(s *settings) *string { return &s.proxy.Cluster }, checkName),
		},
		{
			name: "hash-key-file", value: "FILE", shown: "derived from the cluster's name",
			usage: "file with the secret key of the block hashes: 32 hex digits or 16 bytes",
			set:   setHashKey,
		},
		{
			name: "trusted-proxy", live: true, value: "CIDR", repeats: true,
			usage: "network whose X-Forwarded-* headers are believed",
			set: func(s *settings, v string) error {
				prefix, err := readPrefix(v)
				s.proxy.TrustedProxies = append(s.proxy.TrustedProxies, prefix)
				return err
			},
		},
	}
}

func backendOptions() []*option {
	return []*option{
		{
			name: "backend", live: true, value: "[ID=]URL", repeats: true,
			usage: "inference server to route to; in a file also a mapping of " + strings.Join(backendKeys(), ", "),
			set:   addBackend, setMapping: addBackendMapping,
		},
		{
			name: "max-connections", value: "N", def: "1024", usage: "bound on the connections to one backend",
			set: number(readCount, func(s *settings) *int { return &s.pool.MaxConns }, 1, 1<<20),
		},
		{
			name: "health-interval", value: "DURATION", def: "2s", usage: "time between two health checks of a backend",
			set: durationBetween(func(s *settings) *time.Duration { return &s.pool.HealthInterval }, 10*time.Millisecond, time.Hour),
		},
		{
			name: "connect-timeout", value: "DURATION", def: "2s",
			usage: "bound on name lookup, connect and TLS handshake with a backend, each",
			set:   durationBetween(func(s *settings) *time.Duration { return &s.pool.ConnectTimeout }, time.Millisecond, time.Hour),
		},
		{
			name: "header-timeout", value: "DURATION", def: "0s",
			usage: "bound on the wait for a backend's response headers; 0 for none, since a queued prefill may take minutes",
			set:   durationBetween(func(s *settings) *time.Duration { return &s.pool.HeaderTimeout }, 0, day),
		},
	}
}

func routingOptions() []*option {
	return []*option{
		{
			name: "policy", live: true, value: "POLICY", def: "cost",
			usage: "how a backend is chosen: " + strings.Join(router.PolicyNames(), ", "),
			set:   text(func(s *settings) *string { return &s.router.Policy }, router.CheckPolicy),
		},
		{
			name: "model-policy", live: true, value: "MODEL=POLICY", repeats: true, usage: "policy of one model",
			set: pair("MODEL", "POLICY", true, func(s *settings, model, policy string) (bool, error) {
				_, again := s.router.Policies[model]
				s.router.Policies[model] = policy
				return again, router.CheckPolicy(policy)
			}),
		},
		{
			name: "block-size", value: "BYTES", def: "512",
			usage: "size of a block in bytes of CBR, a multiple of 8, the same on all nodes",
			set: func(s *settings, v string) error {
				n, err := readCount(v)
				if err == nil {
					err = chain.CheckBlockSize(n)
				}
				if err == nil {
					s.router.BlockSize = n
				}
				return err
			},
		},
		{
			name: "ttl", value: "DURATION", def: "10m", usage: "how long a location is believed in without use",
			set: durationBetween(func(s *settings) *time.Duration { return &s.blocks.TTL }, blockmap.MinTTL, blockmap.MaxTTL),
		},
		{
			name: "max-index-bytes", value: "SIZE", def: "96MiB", usage: "bound on the memory of the block map",
			set: sizeBetween(func(s *settings) *int64 { return &s.blocks.MaxBytes }, blockmap.MinBytes, blockmap.MaxBytes),
		},
		{
			name: "cbr-out", live: true, value: "[MODEL=]FIELD", repeats: true,
			usage: "top-level field to leave out of the CBR, beyond the built-in list; a trailing * stands for any ending",
			set:   addField(true),
		},
		{
			name: "cbr-in", live: true, value: "[MODEL=]FIELD", repeats: true,
			usage: "field of the built-in list to take into the CBR",
			set:   addField(false),
		},
	}
}

func requestOptions() []*option {
	return []*option{
		{
			name: "alias", live: true, value: "NAME=MODEL", repeats: true, usage: "another name for a model; backends are sent the model's own",
			set: pair("NAME", "MODEL", false, func(s *settings, name, model string) (bool, error) {
				_, again := s.proxy.Aliases[name]
				s.proxy.Aliases[name] = model
				return again, nil
			}),
		},
		{
			name: "fallback", live: true, value: "MODEL=OTHER", repeats: true,
			usage: "model that answers where no backend of the first can take a request; several are tried in order",
			set: pair("MODEL", "OTHER", true, func(s *settings, model, other string) (bool, error) {
				again := slices.Contains(s.proxy.Fallbacks[model], other)
				s.proxy.Fallbacks[model] = append(s.proxy.Fallbacks[model], other)
				return again, nil
			}),
		},
		{
			name: "allow-origin", live: true, value: "ORIGIN", repeats: true,
			usage: "origin of web pages that may call the client API, such as https://chat.example.com; * for any",
			set: func(s *settings, v string) error {
				s.proxy.AllowedOrigins = append(s.proxy.AllowedOrigins, v)
				return nil
			},
		},
		{
			name: "path", live: true, value: "/PATH", repeats: true, usage: "further engine path to pass through",
			set: func(s *settings, v string) error {
				if !strings.HasPrefix(v, "/") || strings.ContainsAny(v, " ?#\t\r\n") {
					return fmt.Errorf("%q is no path: want one such as /v1/audio/transcriptions", v)
				}
				s.proxy.Paths = append(s.proxy.Paths, v)
				return nil
			},
		},
		{
			name: "max-body-bytes", live: true, value: "SIZE", def: "32MiB", usage: "bound on one request's body",
			set: sizeBetween(func(s *settings) *int64 { return &s.proxy.MaxBodyBytes }, 1<<10, 256<<30),
		},
		{
			name: "body-budget", value: "SIZE", def: "1GiB", usage: "bound on the memory of all bodies in flight",
			set: sizeBetween(func(s *settings) *int64 { return &s.proxy.BodyBudget }, 1<<10, 1<<50),
		},
		{
			name: "upload-idle", live: true, value: "DURATION", def: "10s", usage: "how long a request's body may pause",
			set: durationBetween(func(s *settings) *time.Duration { return &s.proxy.UploadIdle }, time.Millisecond, time.Hour),
		},
		{
			name: "write-idle", live: true, value: "DURATION", def: "1m", usage: "how long a client may take none of its answer",
			set: durationBetween(func(s *settings) *time.Duration { return &s.proxy.WriteIdle }, time.Millisecond, day),
		},
		{
			name: "max-websockets", value: "N", def: "1024", live: true, usage: "bound on the WebSockets that are open at this node or being opened",
			set: number(readCount, func(s *settings) *int { return &s.proxy.MaxSockets }, 1, 1<<20),
		},
		{
			name: "websocket-idle", value: "DURATION", def: "10m", live: true, usage: "how long nothing may pass in a WebSocket in either direction",
			set: durationBetween(func(s *settings) *time.Duration { return &s.proxy.SocketIdle }, time.Second, day),
		},
		{
			name: "debug-headers", live: true, usage: "add X-KVCA-* headers, which tell the decision, to answers",
			set: toggle(func(s *settings) *bool { return &s.proxy.DebugHeaders }),
		},
	}
}

func lifeOptions() []*option {
	return []*option{
		{
			name: "drain-delay", live: true, value: "DURATION", def: "0s",
			usage: "time between not being ready and refusing connections, for load balancers to notice",
			set:   durationBetween(func(s *settings) *time.Duration { return &s.drainDelay }, 0, day),
		},
		{
			name: "drain-timeout", live: true, value: "DURATION", def: "60s", usage: "time that requests in flight have to end at shutdown",
			set: durationBetween(func(s *settings) *time.Duration { return &s.drainTimeout }, 0, day),
		},
		{
			name: "log-level", live: true, value: "LEVEL", def: "info", usage: "least level that is logged: debug, info, warn, error",
			set: func(s *settings, v string) error {
				if err := oneOf(v, "debug", "info", "warn", "error"); err != nil {
					return err
				}
				return s.logLevel.UnmarshalText([]byte(v))
			},
		},
		{
			name: "log-format", value: "FORMAT", def: "text", usage: "text or json",
			set: text(func(s *settings) *string { return &s.logFormat }, func(v string) error { return oneOf(v, "text", "json") }),
		},
	}
}

func simulateOptions() []*option {
	return []*option{
		{
			name: "simulate", value: "N", def: "0", usage: "simulated backends to run inside this process",
			set: number(readCount, func(s *settings) *int { return &s.simulate }, 0, 1024),
		},
		{
			name: "simulate-profile", value: "PROFILE", def: "8b", usage: "what the simulated backends are: 8b, 32b or 70b",
			set: func(s *settings, v string) (err error) {
				s.simulateProfile, err = engine.ProfileNamed(v)
				return err
			},
		},
		{
			name: "simulate-speed", value: "X", def: "1", usage: "how many times faster than real ones the simulated backends are",
			set: number(readFloat, func(s *settings) *float64 { return &s.simulateSpeed }, math.SmallestNonzeroFloat32, 1e6),
		},
		{
			name: "simulate-events", usage: "let the simulated backends publish KV cache events, which the node reads",
			set: toggle(func(s *settings) *bool { return &s.simulateEvents }),
		},
	}
}
