package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http/httpguts"
)

// Config says where spans go. Start from DefaultConfig.
type Config struct {
	// Endpoint is the collector's URL, such as http://otel:4318; /v1/traces is added
	// where it has no path. Empty: as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
	// OTEL_EXPORTER_OTLP_ENDPOINT says, and without them there are no traces.
	Endpoint string
	// HeadersFile has headers for the collector, a line NAME: VALUE each, such as a
	// key. They are secrets: they win over OTEL_EXPORTER_OTLP_HEADERS, which shows in the
	// process's environment. Empty lines and those that begin with # are skipped.
	HeadersFile string
	// Protocol is "http/protobuf", the only one there is; empty is the same.
	Protocol string
	// Ratio is the share of requests that begin a trace of their own, 0 to 1; those
	// of clients that sent a traceparent are traced as that says. Below zero:
	// as OTEL_TRACES_SAMPLER says, else all. A traced request costs some tens of
	// microseconds and two kilobytes to the collector. Default -1.
	Ratio float64
	// Service is the service's name; empty: OTEL_SERVICE_NAME, else "kvca".
	Service string
	// Node and Version are this node's name and the program's version.
	Node, Version string
	// Address says where a backend is, as HOST:PORT, for spans; nil: unsaid.
	Address func(backend string) string
	// Logger is told where the collector does not take spans.
	Logger *slog.Logger
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
}

// DefaultConfig has no traces unless the variables of OpenTelemetry ask for them.
func DefaultConfig() Config { return Config{Ratio: -1, Logger: slog.Default()} }

// Enabled is whether there is a collector to send spans to.
func (c *Config) Enabled() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	endpoint, _ := c.endpoint()
	return endpoint != ""
}

// endpoint is the collector's URL, and whether it is the root of all telemetry's.
func (c *Config) endpoint() (url string, root bool) {
	if own := cmp.Or(c.Endpoint, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")); own != "" {
		return own, false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), true
}

// overHTTP is the one protocol.
const overHTTP = "http/protobuf"

// Validate returns all faults at once.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	endpoint, _ := c.endpoint()
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		fault("traces: the collector's endpoint is not a URL such as http://HOST:4318")
	} else if u.User != nil {
		fault("traces: the collector's endpoint has a user in it: put the Authorization header into the headers file")
	}
	protocol := cmp.Or(c.Protocol, variable("PROTOCOL"), overHTTP)
	if protocol != overHTTP {
		fault("traces: protocol %q is not %s; collectors take that at port 4318", protocol, overHTTP)
	}
	if !(c.Ratio <= 1) {
		fault("traces: ratio %v is not between 0 and 1, nor below zero for what OTEL_TRACES_SAMPLER says", c.Ratio)
	}
	if e := os.Getenv("OTEL_TRACES_EXPORTER"); e != "" && e != "otlp" && e != "none" {
		fault("traces: OTEL_TRACES_EXPORTER=%s is not otlp or none", e)
	}
	return errors.Join(faults...)
}

// maxHeaders bounds the headers file.
const maxHeaders = 64 << 10

// headers reads the headers file. Errors name lines, never values.
func (c *Config) headers() (map[string]string, error) {
	if c.HeadersFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.HeadersFile)
	if err != nil {
		return nil, fmt.Errorf("read the headers file: %w", err)
	}
	if len(text) > maxHeaders {
		return nil, fmt.Errorf("the headers file %s has %d bytes, more than %d", c.HeadersFile, len(text), maxHeaders)
	}
	return parseHeaders(text)
}

func parseHeaders(text []byte) (map[string]string, error) {
	headers := make(map[string]string)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxHeaders+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !validHeader(name, value) {
			return nil, fmt.Errorf("headers file, line %d: expected NAME: VALUE", n)
		}
		headers[name] = value
	}
	return headers, lines.Err()
}

func validHeader(name, value string) bool {
	return httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value)
}
