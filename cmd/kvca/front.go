package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"kvca/cluster/secret"
	"kvca/proxy"
	"kvca/proxy/listen"
	"kvca/proxy/tenant"
)

// front is what stands between clients and the proxy: listeners, certificates and
// keys.
type front struct {
	listeners []*listener
	tenants   *tenant.Directory
	// follows look at files until their context ends.
	follows []func(context.Context)
	// reloads read files now.
	reloads []func() error
}

// listener is one address that is served.
type listener struct {
	flag string
	net.Listener
	tls      *listen.TLS // nil without
	server   *http.Server
	visitors visitors
}

// openFront opens the listeners and reads what protects them.
func (n *node) openFront() error {
	f, s := &n.front, n.settings
	metrics := listen.NewMetrics(n.metrics)
	for _, l := range []struct {
		flag, address string
		tls           tlsFiles
	}{
		{"listen", s.listen, s.front.listenTLS},
		{"admin", s.admin, s.front.adminTLS},
		{"trusted-listen", s.front.trusted, s.front.listenTLS},
	} {
		if l.address == "" {
			continue
		}
		one, err := n.openListener(l.flag, l.address, l.tls, metrics)
		if err != nil {
			return err
		}
		f.listeners = append(f.listeners, one)
	}
	if s.front.keys != "" {
		var err error
		if f.tenants, err = tenant.Open(s.front.keys, n.log); err != nil {
			return fmt.Errorf("--keys-file: %w", err)
		}
		if err = f.tenants.Register(n.metrics); err != nil {
			return fmt.Errorf("--keys-file: %w", err)
		}
		f.follows, f.reloads = append(f.follows, f.tenants.Run), append(f.reloads, f.tenants.Reload)
		s.proxy.Tenants = f.tenants
	}
	return nil
}

func (n *node) openListener(flag, address string, files tlsFiles, metrics *listen.Metrics) (*listener, error) {
	f, s := &n.front, n.settings
	l := &listener{flag: flag}
	if files.cert != "" {
		t, err := listen.NewTLS(listen.TLSConfig{Listener: flag, CertFile: files.cert, KeyFile: files.key, ClientCAFile: files.clientCA, Metrics: metrics}, n.log)
		if err != nil {
			return nil, fmt.Errorf("TLS of --%s: %w", flag, err)
		}
		l.tls = t
		f.follows, f.reloads = append(f.follows, t.Run), append(f.reloads, t.Reload)
	}
	raw, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open --%s: %w", flag, err)
	}
	if l.Listener = raw; flag == "admin" {
		return l, nil
	}
	l.Listener = listen.Limit(l.Listener, flag, s.front.maxConnections, metrics, n.log)
	if len(s.front.proxyProtocol) > 0 {
		l.Listener = listen.ProxyProtocol(l.Listener, s.front.proxyProtocol, n.log)
	}
	return l, nil
}

// handle gives the listener what it serves.
func (l *listener) handle(h http.Handler, n *node) {
	l.server = proxy.NewHTTPServer(l.visitors.count(h), n.log)
}

// serve serves until the server is shut down.
func (l *listener) serve() error {
	var err error
	if patient := proxy.Patient(l.Listener); l.tls != nil {
		l.server.TLSConfig = l.tls.Config()
		err = l.server.ServeTLS(patient, "", "")
	} else {
		err = l.server.Serve(patient)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve --%s: %w", l.flag, err)
	}
	return nil
}

// url is where the listener is reached.
func (l *listener) url() string {
	scheme := "http://"
	if l.tls != nil {
		scheme = "https://"
	}
	return scheme + l.Addr().String()
}

// close ends the listener at once.
func (l *listener) close() {
	if l.server != nil {
		l.server.Close() // what it may fail with is a listener that is closed
	}
	l.Listener.Close()
}

// of is the listener of a flag, nil for none.
func (f *front) of(flag string) *listener {
	for _, l := range f.listeners {
		if l.flag == flag {
			return l
		}
	}
	return nil
}

// openPath is for the paths of the admin API that need no token: what supervisors and load
// balancers ask, and the page before anyone has logged in, which holds no data.
func openPath(r *http.Request) bool {
	path := r.URL.Path
	return path == "/healthz" || path == "/readyz" || r.Method == http.MethodGet && (path == "/" || strings.HasPrefix(path, "/page/"))
}

// guard asks for the admin API's token, where there is one.
func (n *node) guard(h http.Handler) (http.Handler, error) {
	file := n.settings.front.adminToken
	if file == "" {
		if isLoopback(n.front.of("admin").Addr().String()) {
			return fromHere(h), nil
		}
		return h, nil
	}
	var now atomic.Pointer[[sha256.Size]byte]
	follow, err := secret.Follow(file, n.log, func(content []byte) error {
		token := bytes.TrimSpace(content)
		if len(token) < minToken {
			return fmt.Errorf("the token has %d bytes: want at least %d, such as from head -c 32 /dev/urandom | base64", len(token), minToken)
		}
		sum := sha256.Sum256(token)
		now.Store(&sum)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("--admin-token-file: %w", err)
	}
	n.front.follows = append(n.front.follows, follow)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(token))
		if !openPath(r) && (!bearer || subtle.ConstantTimeCompare(sum[:], now.Load()[:]) != 1) {
			refuseAdmin(w)
			return
		}
		h.ServeHTTP(w, r)
	}), nil
}

// refuseAdmin answers who has no token, or a wrong one.
func refuseAdmin(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="kvca admin"`)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusUnauthorized)
	// Who does not take the answer needs none.
	io.WriteString(w, `{"error":{"message":"The admin API asks for its token: Authorization: Bearer TOKEN.","type":"invalid_request_error","param":null,"code":"invalid_admin_token"}}`)
}

// fromHere answers only what was asked for under a name of this host. An admin API on
// loopback is for whoever is on the host, not for web pages that they look at: such
// a page can give its own name this address, and then asks under that.
func fromHere(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := net.JoinHostPort(hostOf(r.Host), "0"); !isLoopback(host) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"error":{"message":"The admin API is on loopback and was asked for under another name: use 127.0.0.1 or localhost, or set --admin-token-file.","type":"permission_error","param":null,"code":"foreign_host"}}`+"\n")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hostOf is a Host header without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// minToken is the least length of the admin API's token, in bytes.
const minToken = 16
