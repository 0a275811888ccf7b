package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvca/proxy/tenant"
)

// secured are the files of a node that is protected, and who may ask it.
type secured struct {
	cert, key, token, keys string
	tenantKey              string
	http                   *http.Client
}

const adminSecret = "an admin's token of some length"

func newSecured(t *testing.T) *secured {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	self := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gw"}, NotAfter: time.Now().Add(90 * 24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, self, self, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	key, hash := tenant.NewKey()
	s := &secured{
		cert:  write(t, "tls.crt", cert),
		key:   write(t, "tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))),
		token: write(t, "admin.token", adminSecret+"\n"), tenantKey: key,
		keys: write(t, "keys.yaml", "tenants:\n- name: acme\n  keys: [\""+hash+"\"]\n  models: [sim]\n  cache_salt: acme's salt is long enough\n  limits: {requests_per_second: 1, burst: 2s}\n"),
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(cert))
	s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}, Timeout: patience}
	t.Cleanup(s.http.CloseIdleConnections)
	return s
}

// ask sends a request with an Authorization header, "" for none, and returns the
// status and the text of the answer.
func (s *secured) ask(t *testing.T, method, url, bearer, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	answer, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// runSecured starts a node with all that protects one.
func runSecured(t *testing.T, more map[string][]string) (*running, *secured) {
	t.Helper()
	s := newSecured(t)
	flags := map[string][]string{
		"simulate": {"1"}, "simulate-speed": {"100"}, "tls-cert": {s.cert}, "tls-key": {s.key}, "admin-tls-cert": {s.cert}, "admin-tls-key": {s.key},
		"admin-token-file": {s.token}, "keys-file": {s.keys}, "trusted-listen": {"127.0.0.1:0"}, "steering": {"refuse"},
	}
	for name, values := range more {
		flags[name] = values
	}
	return runWith(t, flags, s.http), s
}

const aChat = `{"model":"sim","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`

func TestNobodyGetsInWithoutAKey(t *testing.T) {
	r, s := runSecured(t, nil)
	chat := r.ClientURL() + "/v1/chat/completions"
	for _, c := range []struct {
		name, key, body string
		status          int
		code            string
	}{
		{"no key", "", aChat, 401, "invalid_api_key"},
		{"a wrong key", "kvca-wrong", aChat, 401, "invalid_api_key"},
		{"the admin's token", adminSecret, aChat, 401, "invalid_api_key"},
		{"a field that steers", s.tenantKey, strings.Replace(aChat, "{", `{"kv_transfer_params":{},`, 1), 403, "field_not_allowed"},
		{"the tenant's key", s.tenantKey, aChat, 200, ""},
	} {
		status, text := s.ask(t, http.MethodPost, chat, c.key, c.body)
		if status != c.status || !strings.Contains(text, c.code) {
			t.Errorf("%s: %d %s", c.name, status, text)
		}
	}
	if status, text := s.ask(t, http.MethodGet, r.ClientURL()+"/v1/models", "", ""); status != 401 {
		t.Errorf("models without a key: %d %s", status, text)
	}
	for path, want := range map[string]int{"/readyz": 200, "/healthz": 200, "/metrics": 404, "/cluster/status": 404} {
		if status, text := s.ask(t, http.MethodGet, r.ClientURL()+path, "", ""); status != want {
			t.Errorf("%s where clients are served: %d %s", path, status, text)
		}
	}
	trusted := r.front.of("trusted-listen").url() + "/v1/chat/completions"
	if status, text := s.ask(t, http.MethodPost, trusted, "", strings.Replace(aChat, "{", `{"kv_transfer_params":{},`, 1)); status != 200 {
		t.Errorf("a trusted client that steers: %d %s", status, text)
	}
}

func TestATenantIsHeldToItsLimits(t *testing.T) {
	r, s := runSecured(t, nil)
	refused := 0
	for range 6 { // two a second saved up, and one each second
		status, text := s.ask(t, http.MethodPost, r.ClientURL()+"/v1/chat/completions", s.tenantKey, aChat)
		if status == 429 && strings.Contains(text, "rate_limit_exceeded") {
			refused++
		} else if status != 200 {
			t.Errorf("%d %s", status, text)
		}
	}
	if refused == 0 || refused == 6 {
		t.Errorf("%d of 6 requests were refused", refused)
	}
}

func TestTheAdminAPIAsksForItsToken(t *testing.T) {
	r, s := runSecured(t, nil)
	for _, c := range []struct {
		path, token string
		status      int
	}{
		{"/healthz", "", 200},
		{"/readyz", "", 200},
		{"/", "", 200},
		{"/metrics", "", 401},
		{"/cluster/status", "", 401},
		{"/live", "", 401},
		{"/debug/pprof/cmdline", "", 401},
		{"/cluster/status", s.tenantKey, 401},
		{"/cluster/status", adminSecret + "x", 401},
		{"/cluster/status", adminSecret, 200},
		{"/metrics", adminSecret, 200},
	} {
		if status, text := s.ask(t, http.MethodGet, r.AdminURL()+c.path, c.token, ""); status != c.status {
			t.Errorf("%s: %d, want %d: %.100s", c.path, status, c.status, text)
		}
	}
	refused, err := s.http.Get(r.AdminURL() + "/cluster/status")
	if err != nil {
		t.Fatal(err)
	}
	if refused.Body.Close(); refused.Header.Get("Content-Type") != "application/json" {
		t.Errorf("who has no token is answered with %v", refused.Header)
	}
	if _, _, err := fetchStatus(t.Context(), adminAPI{r.AdminURL(), s.token, s.cert}); err != nil {
		t.Errorf("kvca status: %v", err)
	}
	_, _, err = fetchStatus(t.Context(), adminAPI{r.AdminURL(), "", s.cert})
	if err == nil || !strings.Contains(err.Error(), "asks for its token") || !strings.Contains(err.Error(), "--token-file FILE, or KVCA_TOKEN_FILE") {
		t.Errorf("kvca status without a token: %v", err)
	}
}

// What a client sends is its own, and what protects the node is the operator's:
// neither is in any log, at its most talkative, nor in what the admin API shows.
func TestSecretsAndPromptsAreNotLogged(t *testing.T) {
	accessLog := filepath.Join(t.TempDir(), "access.log")
	s := newSecured(t)
	log := new(lockedBuffer)
	settings := onItsOwn(t, map[string][]string{
		"simulate": {"1"}, "simulate-speed": {"100"}, "tls-cert": {s.cert}, "tls-key": {s.key}, "admin-token-file": {s.token},
		"keys-file": {s.keys}, "access-log": {accessLog}, "access-log-client": {"full"},
	})
	n, err := newNode(settings, newLogger(log, "json", slog.LevelDebug))
	if err != nil {
		t.Fatal(err)
	}
	r := begun(t, n, s.http)
	const prompt = "a prompt that nobody else may read"
	body := strings.Replace(aChat, "hi", prompt, 1)
	url := r.ClientURL() + "/v1/chat/completions?secret=in-a-query"
	for _, key := range []string{s.tenantKey, "kvca-a-wrong-key-of-a-client"} {
		s.ask(t, http.MethodPost, url, key, body)
	}
	s.ask(t, http.MethodPost, url, s.tenantKey, strings.Replace(body, `"sim"`, `"no-such-model"`, 1))
	s.ask(t, http.MethodPost, url, s.tenantKey, body[:len(body)-4])
	var seen strings.Builder
	for _, path := range []string{"/metrics", "/cluster/status", "/decisions?details=true", "/live", "/backends"} {
		status, text := s.ask(t, http.MethodGet, r.AdminURL()+path, adminSecret, "")
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
		seen.WriteString(text)
	}
	r.stop()
	if err := r.ends(t); err != nil {
		t.Error(err)
	}
	lines, err := os.ReadFile(accessLog)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(lines), "\n"); got != 4 {
		t.Errorf("%d lines in the access log:\n%s", got, lines)
	}
	seen.WriteString(log.String() + string(lines))
	for _, secret := range []string{prompt, s.tenantKey, "kvca-a-wrong-key", adminSecret, "acme's salt", "in-a-query", "Bearer"} {
		if strings.Contains(seen.String(), secret) {
			t.Errorf("%q is shown or logged", secret)
		}
	}
}

func TestAnAdminAPIOnLoopbackAnswersUnderNamesOfThisHostOnly(t *testing.T) {
	r := run(t, nil)
	for host, want := range map[string]int{
		"127.0.0.1:8081": 200, "localhost": 200, "[::1]:8081": 200, "127.8.8.8:1": 200,
		"evil.example": 403, "evil.example:8081": 403, "10.0.0.1:8081": 403, "localhost.evil.example": 403,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.AdminURL()+"/cluster/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		answer, err := r.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("asked as %s: %s, want %d", host, answer.Status, want)
		}
	}
}
