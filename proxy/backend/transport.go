package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	// writeBufferBytes holds the headers and a small body, so that these are one
	// write; a larger body goes past it (see bulkConn). It is what an idle
	// connection costs, with the same for reading.
	writeBufferBytes = 8 << 10
	readBufferBytes  = 8 << 10
	// maxHeaderBytes bounds a response's headers.
	maxHeaderBytes = 1 << 20
)

// keepAlive finds out within half a minute that a host has vanished under a
// request that waits for its first byte, for which there is no deadline.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// newTransport makes the connections that requests use: at most MaxConns.
func newTransport(c Config, scheme string, pool PoolConfig) (*http.Transport, error) {
	t := &http.Transport{
		DialContext:            dial(pool),
		DisableCompression:     true,
		MaxConnsPerHost:        pool.MaxConns,
		MaxIdleConnsPerHost:    pool.MaxConns,
		IdleConnTimeout:        pool.IdleTimeout,
		TLSHandshakeTimeout:    pool.ConnectTimeout,
		ResponseHeaderTimeout:  pool.HeaderTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		WriteBufferSize:        writeBufferBytes,
		ReadBufferSize:         readBufferBytes,
		Protocols:              protocols(scheme),
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: keepAlive.Idle, PingTimeout: keepAlive.Idle},
	}
	if scheme != "https" {
		return t, nil
	}
	config, err := tlsConfig(c)
	t.TLSClientConfig = config
	return t, err
}

// newProbeTransport makes the watcher's one connection, so that a probe never
// waits behind requests.
func newProbeTransport(data *http.Transport, pool PoolConfig) *http.Transport {
	t := data.Clone()
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = 1, 1
	t.ResponseHeaderTimeout = 0
	t.WriteBufferSize = 1 << 10
	t.IdleConnTimeout = pool.IdleTimeout
	return t
}

func protocols(scheme string) *http.Protocols {
	p := new(http.Protocols)
	switch scheme {
	case "h2c":
		p.SetUnencryptedHTTP2(true)
	case "https":
		p.SetHTTP1(true)
		p.SetHTTP2(true)
	default:
		p.SetHTTP1(true)
	}
	return p
}

// dial bounds the connect by ConnectTimeout also where a Dial of the caller's
// own does not.
func dial(pool PoolConfig) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, pool.ConnectTimeout, errConnectTimeout)
		defer cancel()
		conn, err := pool.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return bulkConn{conn}, nil
	}
}

var errConnectTimeout = fmt.Errorf("connect: %w", os.ErrDeadlineExceeded)

func tlsConfig(c Config) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.ServerName,
		InsecureSkipVerify: c.InsecureSkipVerify, // the operator's own choice, off by default
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}
	if c.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca_file: %q holds no certificate: want PEM", c.CAFile)
	}
	return config, nil
}
