package trace

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// defaultTimeout is OpenTelemetry's.
const defaultTimeout = 10 * time.Second

// variable is one of the exporter's variables: that of traces, else the general one.
func variable(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// newClient makes the client of the collector.
func newClient(cfg *Config) (*client, error) {
	c := &client{url: cfg.target(), timeout: defaultTimeout, header: http.Header{
		"Content-Type": {"application/x-protobuf"}, "User-Agent": {"kvca/" + cfg.Version},
	}}
	var faults []error
	if err := c.setHeaders(cfg); err != nil {
		faults = append(faults, err)
	}
	switch compression := variable("COMPRESSION"); compression {
	case "gzip":
		c.gzip = true
		c.header.Set("Content-Encoding", "gzip")
	case "", "none":
	default:
		faults = append(faults, fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION: %q is not gzip or none", compression))
	}
	if text := variable("TIMEOUT"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			faults = append(faults, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT: %q is not a number of milliseconds", text))
		}
		c.timeout = time.Duration(n) * time.Millisecond
	}
	trust, err := tlsConfig()
	if err != nil {
		faults = append(faults, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxConnsPerHost = trust, 2
	// Headers may have a key in them: it goes nowhere else.
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, errors.Join(faults...)
}

// target is where spans are sent. The general variable is the root of all kinds of
// telemetry, so a path is added to it whatever it has; to what was configured only
// where it has none.
func (c *Config) target() string {
	endpoint, root := c.endpoint()
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	if root || c.Endpoint != "" && (u.Path == "" || u.Path == "/") {
		u = u.JoinPath("v1/traces")
	}
	return u.String()
}

// setHeaders takes the headers of the variable, then those of the file.
func (c *client) setHeaders(cfg *Config) error {
	for pair := range strings.SplitSeq(variable("HEADERS"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || !validHeader(name, value) {
			return errors.New("OTEL_EXPORTER_OTLP_HEADERS: expected NAME=VALUE pairs with commas between")
		}
		c.header.Set(name, value)
	}
	headers, err := cfg.headers()
	for name, value := range headers {
		c.header.Set(name, value)
	}
	return err
}

// tlsConfig is of the files that the variables name, nil for none.
func tlsConfig() (*tls.Config, error) {
	ca, certificate, key := variable("CERTIFICATE"), variable("CLIENT_CERTIFICATE"), variable("CLIENT_KEY")
	if ca == "" && certificate == "" && key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate in PEM", ca)
		}
	}
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
