package main

import (
	"time"

	"kvca/proxy/accesslog"
)

// watchSettings are how the node is watched from outside.
type watchSettings struct {
	log                                 accesslog.Config
	traceTo, traceService, traceHeaders string
	traceRatio                          float64
}

func watchOptions() []*option {
	return []*option{
		{
			name: "access-log", value: "FILE", shown: "none", usage: "a line for each request; - is standard output",
			set: text(func(s *settings) *string { return &s.watch.log.Path }, notEmpty),
		},
		{
			name: "access-log-format", value: "FORMAT", def: accesslog.JSON, usage: "json or text",
			set: text(func(s *settings) *string { return &s.watch.log.Format }, func(v string) error { return oneOf(v, accesslog.JSON, accesslog.Text) }),
		},
		{
			name: "access-log-ratio", value: "X", def: "1", usage: "share of requests without error that get a line; errors always do",
			set: number(readFloat, func(s *settings) *float64 { return &s.watch.log.Ratio }, 0, 1),
		},
		{
			name: "access-log-slow", value: "DURATION", def: "0s", usage: "requests that take longer always get a line; 0 for none",
			set: durationBetween(func(s *settings) *time.Duration { return &s.watch.log.Slow }, 0, day),
		},
		{
			name: "access-log-client", value: "HOW", def: accesslog.ClientNetwork,
			usage: "what stands for the client's address: full, network (its /24 or /48), hash, none",
			set: text(func(s *settings) *string { return &s.watch.log.Client }, func(v string) error {
				return oneOf(v, accesslog.ClientFull, accesslog.ClientNetwork, accesslog.ClientHash, accesslog.ClientNone)
			}),
		},
		{
			name: "trace-endpoint", value: "URL", shown: "OTEL_EXPORTER_OTLP_ENDPOINT, else none",
			usage: "OpenTelemetry collector that spans are sent to, OTLP over HTTP, such as http://otel:4318",
			set:   text(func(s *settings) *string { return &s.watch.traceTo }, notEmpty),
		},
		{
			name: "trace-ratio", value: "X", def: "-1", shown: "OTEL_TRACES_SAMPLER, else 1",
			usage: "share of requests that begin a trace; those of clients that sent a traceparent go by that",
			set:   number(readFloat, func(s *settings) *float64 { return &s.watch.traceRatio }, -1, 1),
		},
		{
			name: "trace-headers-file", value: "FILE", shown: "none", usage: "headers for the collector, a line NAME: VALUE each",
			set: text(func(s *settings) *string { return &s.watch.traceHeaders }, notEmpty),
		},
		{
			name: "trace-service", value: "NAME", shown: "OTEL_SERVICE_NAME, else kvca", usage: "the service's name in traces",
			set: text(func(s *settings) *string { return &s.watch.traceService }, notEmpty),
		},
	}
}
