package listen

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"kvca/state/virtualtime"
)

// open makes a TLS of a certificate that lasts for so long.
func open(t *testing.T, p pair, lasts time.Duration, change func(*TLSConfig)) (*TLS, *logText, *prometheus.Registry) {
	t.Helper()
	cert, key := issue(t, nil, lasts)
	write(t, p.cert, cert)
	write(t, p.key, key)
	log, reg := new(logText), prometheus.NewRegistry()
	cfg := TLSConfig{Listener: "listen", CertFile: p.cert, KeyFile: p.key, Metrics: NewMetrics(reg)}
	if change != nil {
		change(&cfg)
	}
	c, err := NewTLS(cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return c, log, reg
}

// handshake connects to a server with c and says what came of it.
func handshake(t *testing.T, c *TLS, client *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := tls.NewListener(l, c.Config()).Accept(); err == nil {
			io.WriteString(conn, "x")
			conn.Close()
		}
	}()
	defer func() { <-done }()
	client.InsecureSkipVerify = true
	conn, err := tls.Dial("tcp", l.Addr().String(), client)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	if _, err := readN(conn, 1); err != nil { // TLS 1.3 says only now that it wants another certificate
		return tls.ConnectionState{}, err
	}
	return conn.ConnectionState(), nil
}

const year = 365 * 24 * time.Hour

func TestVersionsAndProtocolsAreNegotiated(t *testing.T) {
	c, _, _ := open(t, newPair(t), year, nil)
	strict, _, _ := open(t, newPair(t), year, func(c *TLSConfig) { c.MinVersion = tls.VersionTLS13 })
	for _, test := range []struct {
		name   string
		server *TLS
		client *tls.Config
		want   uint16
		proto  string
	}{
		{"anything", c, &tls.Config{}, tls.VersionTLS13, ""},
		{"1.2", c, &tls.Config{MaxVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, tls.VersionTLS12, "http/1.1"},
		{"HTTP/2", c, &tls.Config{NextProtos: []string{"http/1.1", "h2"}}, tls.VersionTLS13, "h2"},
		{"1.1", c, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, 0, ""},
		{"1.2 where 1.3 is asked for", strict, &tls.Config{MaxVersion: tls.VersionTLS12}, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			state, err := handshake(t, test.server, test.client)
			if (err == nil) != (test.want != 0) || state.Version != test.want || state.NegotiatedProtocol != test.proto {
				t.Errorf("version %#x, protocol %q, %v", state.Version, state.NegotiatedProtocol, err)
			}
		})
	}
}

func TestClientsNeedACertificateOfTheAuthority(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	p := newPair(t)
	write(t, p.ca, ours.pem)
	c, _, _ := open(t, p, year, func(c *TLSConfig) { c.ClientCAFile = p.ca })
	with := func(a *authority) *tls.Config {
		cert, err := tls.X509KeyPair(issue(t, a, time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{cert}}
	}
	if _, err := handshake(t, c, with(ours)); err != nil {
		t.Errorf("a client of the authority: %v", err)
	}
	for name, client := range map[string]*tls.Config{"none": {}, "another's": with(theirs), "its own": with(nil)} {
		if _, err := handshake(t, c, client); err == nil {
			t.Errorf("a client with the certificate %s got in", name)
		}
	}
	write(t, p.ca, theirs.pem)
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := handshake(t, c, with(ours)); err == nil {
		t.Error("the authority was changed, and a client of the old one got in")
	}
}

func TestFaultsAreToldAllAtOnce(t *testing.T) {
	cfg := TLSConfig{KeyFile: "k", ClientCAFile: "ca", MinVersion: tls.VersionTLS11}
	err := cfg.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v", err)
	}
}

func TestChangedFilesComeIntoForceTogether(t *testing.T) {
	p := newPair(t)
	virtualtime.Test(t, func(t *testing.T) {
		c, log, reg := open(t, p, year, nil)
		go c.Run(t.Context())
		wait := func() { time.Sleep(3 * pollEvery); synctest.Wait() }
		first := c.current.Load()
		second, secondKey := issue(t, nil, 2*year)
		stays := func(what string, errors int) {
			t.Helper()
			wait()
			if c.current.Load() != first {
				t.Fatalf("%s came into force", what)
			}
			if n := lines(log, "ERROR"); n != errors {
				t.Errorf("%s: %d errors in the log, want %d:\n%s", what, n, errors, log)
			}
		}
		write(t, p.cert, second)
		stays("a certificate without its key", 1)
		os.Remove(p.cert)
		stays("nothing", 2)
		write(t, p.cert, bytes.Repeat([]byte("#"), maxFile+1))
		stays("a file without end", 3)
		old, oldKey := issue(t, nil, -time.Minute)
		write(t, p.cert, old)
		write(t, p.key, oldKey)
		stays("a certificate that has expired", 4)
		write(t, p.cert, second)
		write(t, p.key, secondKey)
		wait()
		now := c.current.Load()
		if now == first || now.fingerprint == first.fingerprint {
			t.Fatal("the new certificate is not in force")
		}
		if !strings.Contains(log.String(), now.fingerprint) || strings.Contains(log.String(), "PRIVATE") {
			t.Errorf("log:\n%s", log)
		}
		want := `
# HELP kvca_tls_reload_total Times that changed certificate files were read, by result: ok or failed.
# TYPE kvca_tls_reload_total counter
kvca_tls_reload_total{result="failed"} 4
kvca_tls_reload_total{result="ok"} 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "kvca_tls_reload_total"); err != nil {
			t.Error(err)
		}
		if got := testutil.ToFloat64(c.cfg.Metrics.expiry); got != float64(now.expires.Unix()) {
			t.Errorf("expiry %v, want %v", got, now.expires.Unix())
		}
	})
}

// Who asked for a reload logs what was wrong: the looks that follow do not say it again.
func TestAFaultThatAReloadReturnedIsNotSaidOnceMore(t *testing.T) {
	expired, expiredKey := issue(t, nil, -time.Minute)
	other, _ := issue(t, nil, year)
	for name, spoil := range map[string]func(pair){
		"no certificate": func(p pair) { write(t, p.cert, []byte("no certificate")) },
		"no file":        func(p pair) { os.Remove(p.cert) },
		"an expired one": func(p pair) {
			write(t, p.cert, expired)
			write(t, p.key, expiredKey)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			c, log, _ := open(t, p, year, nil)
			spoil(p)
			if err := c.Reload(); err == nil || !strings.Contains(err.Error(), p.cert) {
				t.Errorf("the error %v does not name %s", err, p.cert)
			}
			for range 3 {
				c.look()
			}
			if n := lines(log, "ERROR"); n != 0 {
				t.Errorf("said %d times more:\n%s", n, log)
			}
			write(t, p.cert, other)
			for range 3 {
				c.look()
			}
			if n := lines(log, "ERROR"); n != 1 {
				t.Errorf("another fault was said %d times:\n%s", n, log)
			}
		})
	}
}

// A clock that is a little behind the issuer's must not keep a certificate out for ever.
func TestACertificateThatBeginsLaterIsTakenThen(t *testing.T) {
	p := newPair(t)
	virtualtime.Test(t, func(t *testing.T) {
		c, log, _ := open(t, p, year, nil)
		go c.Run(t.Context())
		first := c.current.Load()
		cert, key := issueFrom(t, nil, time.Now().Add(2*time.Minute), time.Now().Add(year))
		write(t, p.cert, cert)
		write(t, p.key, key)
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.current.Load() != first || lines(log, "ERROR") != 1 {
			t.Errorf("before it is valid: in force %v, log %s", c.current.Load() != first, log)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if c.current.Load() == first {
			t.Error("it is valid now and not in force")
		}
	})
}

func TestExpiryIsWarnedOfOnceADay(t *testing.T) {
	c, log, _ := open(t, newPair(t), 16*24*time.Hour, nil)
	issued := time.Now()
	for _, step := range []struct {
		day              float64
		warnings, errors int
	}{{1, 0, 0}, {1.9, 0, 0}, {2.1, 1, 0}, {3, 1, 0}, {3.2, 2, 0}, {15.9, 3, 0}, {16.1, 3, 0}, {17, 3, 1}, {17.5, 3, 1}, {18.1, 3, 2}} {
		c.warnOfExpiry(issued.Add(time.Duration(step.day * 24 * float64(time.Hour))))
		if lines(log, "WARN") != step.warnings || lines(log, "ERROR") != step.errors {
			t.Errorf("day %v: want %d warnings and %d errors in\n%s", step.day, step.warnings, step.errors, log)
		}
	}
}

func TestAKeyThatAnyoneCanReadIsWarnedOf(t *testing.T) {
	p := newPair(t)
	cert, key := issue(t, nil, year)
	write(t, p.cert, cert)
	write(t, p.key, key)
	os.Chmod(p.key, 0o644)
	var log logText
	if _, err := NewTLS(TLSConfig{CertFile: p.cert, KeyFile: p.key}, slog.New(slog.NewTextHandler(&log, nil))); err != nil || lines(&log, "WARN") != 1 {
		t.Errorf("%v, log %s", err, &log)
	}
}

// The whole of it, as it is put together for clients: a bound, the PROXY protocol, and
// TLS with HTTP/2 above.
func TestClientsOfABalancerAreSeenThroughTLS(t *testing.T) {
	c, log, _ := open(t, newPair(t), year, nil)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := ProxyProtocol(Limit(inner, "listen", 10, nil, nil), prefixes("127.0.0.0/8"), nil)
	s := &http.Server{TLSConfig: c.Config(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Proto+" "+r.RemoteAddr)
	})}
	done := make(chan error)
	go func() { done <- s.ServeTLS(l, "", "") }()
	for _, header := range []string{"", "PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n"} {
		roots := x509.NewCertPool()
		pem, _ := os.ReadFile(c.cfg.CertFile)
		roots.AppendCertsFromPEM(pem)
		transport := &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "gateway"},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, inner.Addr().String())
				if err == nil {
					_, err = io.WriteString(conn, header)
				}
				return conn, err
			},
		}
		resp, err := (&http.Client{Transport: transport}).Get("https://gateway/")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		transport.CloseIdleConnections()
		want := "HTTP/2.0 127.0.0.1:"
		if header != "" {
			want = "HTTP/2.0 192.0.2.7:4711"
		}
		if !strings.HasPrefix(string(text), want) {
			t.Errorf("with %q: %s", header, text)
		}
	}
	s.Close()
	<-done
	if lines(log, "ERROR") != 0 {
		t.Error(log)
	}
}
