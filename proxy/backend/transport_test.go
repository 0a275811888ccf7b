package backend

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kvca/router"
)

// onLoopback adds a backend over real sockets.
func onLoopback(t testing.TB, config PoolConfig, c Config) *Backend {
	t.Helper()
	pool, err := NewPool(config, newFakeSlots())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := pool.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := pool.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return pool.Of(pool.All()[0])
}

// echo answers health checks and sends back what it is sent.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		return
	}
	w.Header().Set("X-Proto", r.Proto)
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(body)
}

func TestSchemes(t *testing.T) {
	h2 := func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.StartTLS()
	}
	h2c := func(s *httptest.Server) {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	}
	cases := map[string]struct {
		start  func(s *httptest.Server)
		scheme string
		proto  string
		change func(c *Config, s *httptest.Server)
	}{
		"http":           {func(s *httptest.Server) { s.Start() }, "http", "HTTP/1.1", nil},
		"https, own CA":  {h2, "https", "HTTP/2.0", withCA(t)},
		"https, any":     {h2, "https", "HTTP/2.0", func(c *Config, _ *httptest.Server) { c.InsecureSkipVerify = true }},
		"https, no h2":   {func(s *httptest.Server) { s.StartTLS() }, "https", "HTTP/1.1", withCA(t)},
		"h2c":            {h2c, "h2c", "HTTP/2.0", nil},
		"https, refused": {h2, "https", "", nil},
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), 32<<10)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			c.start(s)
			defer s.Close()
			config := Config{ID: "x", URL: c.scheme + "://" + s.Listener.Addr().String(), Models: []string{"m"}}
			if c.change != nil {
				c.change(&config, s)
			}
			b := onLoopback(t, PoolConfig{}, config)
			for range 3 {
				resp, err := b.Do(t.Context(), http.MethodPost, "/x", http.Header{}, body)
				if c.proto == "" {
					if Classify(err, 0) != ConnectFailure || b.Facts().Standing() == router.Available {
						t.Fatalf("an unknown certificate is accepted: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || !bytes.Equal(got, body) || resp.Header.Get("X-Proto") != c.proto {
					t.Fatalf("%d bytes over %s, %v", len(got), resp.Header.Get("X-Proto"), err)
				}
			}
			if got := b.Facts().Standing(); got != router.Available {
				t.Fatalf("standing %v", got)
			}
		})
	}
}

func withCA(t *testing.T) func(*Config, *httptest.Server) {
	return func(c *Config, s *httptest.Server) {
		c.CAFile = filepath.Join(t.TempDir(), "ca.pem")
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		if err := os.WriteFile(c.CAFile, block, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnreadableCAIsRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"/does/not/exist", empty} {
		if _, err := tlsConfig(Config{CAFile: file}); err == nil || !strings.Contains(err.Error(), "ca_file") {
			t.Errorf("%s: %v", file, err)
		}
	}
	if c, err := tlsConfig(Config{}); err != nil || c.InsecureSkipVerify || c.MinVersion < tls.VersionTLS12 {
		t.Errorf("%+v, %v", c, err)
	}
}

// countingConn counts the writes of one connection.
type countingConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

func TestRequestIsOneWriteOrTwo(t *testing.T) {
	var writes atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	count := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countingConn{conn, &writes}, err
	}
	b := onLoopback(t, PoolConfig{Dial: count, HealthInterval: time.Hour}, Config{URL: server.URL, Models: []string{"m"}})
	for size, want := range map[int]int32{2 << 10: 1, 400 << 10: 2} {
		writes.Store(0)
		body := bytes.Repeat([]byte("x"), size)
		resp, err := b.Do(t.Context(), http.MethodPost, "/x", http.Header{}, body)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if len(got) != size || writes.Load() != want {
			t.Errorf("%d bytes came back; %d writes for %d bytes, want %d", len(got), writes.Load(), size, want)
		}
	}
}

func TestFailuresHaveNames(t *testing.T) {
	wrap := func(f Failure) error { return &Error{Backend: "a", Failure: f, Err: io.EOF} }
	cases := []struct {
		err    error
		status int
		want   Failure
	}{
		{wrap(ConnectFailure), 0, ConnectFailure},
		{wrap(LocalFailure), 0, LocalFailure},
		{io.ErrUnexpectedEOF, 200, StreamFailure},
		{io.EOF, 0, BrokenConnection},
		{context.Canceled, 200, NoFailure},
		{context.DeadlineExceeded, 0, NoFailure},
	}
	for _, c := range cases {
		if got := Classify(c.err, c.status); got != c.want {
			t.Errorf("%v, %d: %v, want %v", c.err, c.status, got, c.want)
		}
	}
	if !errors.Is(wrap(ConnectFailure), io.EOF) || !strings.Contains(wrap(ConnectFailure).Error(), "backend a") {
		t.Error("error text or cause")
	}
}

func TestLackOfDescriptorsIsNoBackendsFault(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		lack := &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		e := new(exchange)
		if got := e.failure(lack); got != LocalFailure {
			t.Fatalf("got %v", got)
		}
		b := f.backend("a")
		for range 9 {
			b.Report(LocalFailure, 1)
		}
		w := &watcher{Backend: b}
		for range 9 {
			w.judged(t.Context(), probeBad, lack)
		}
		f.wantStanding("a", router.Available)
	})
}
