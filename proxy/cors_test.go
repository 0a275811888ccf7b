package proxy

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kvca/router"
)

func (g *rig) do(method, path string, header ...string) *http.Response {
	g.Helper()
	req, err := http.NewRequest(method, g.client.URL+path, nil)
	if err != nil {
		g.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := g.client.Client().Do(req)
	if err != nil {
		g.Fatal(err)
	}
	return resp
}

func TestPagesOfAllowedOriginsMayReadAnswers(t *testing.T) {
	const app = "https://app.example"
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.AllowedOrigins = []string{app} })
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Access-Control-Allow-Origin", "*") // the gateway's word counts
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		w.Header().Set("Vary", "Accept")
		io.WriteString(w, "fine")
	})
	pre := g.do(http.MethodOptions, "/v1/chat/completions", "Origin", app, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
	read(t, pre)
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": app, "Access-Control-Allow-Methods": "POST, OPTIONS", "Access-Control-Allow-Headers": "authorization,content-type",
		"Access-Control-Max-Age": "600", "Vary": "Origin", "Allow": "POST, OPTIONS",
	} {
		if pre.StatusCode != 204 || pre.Header.Get(name) != want {
			t.Errorf("preflight: %d, %s is %q", pre.StatusCode, name, pre.Header.Get(name))
		}
	}
	resp := g.post("/v1/chat/completions", chat("hi"), "Origin", app)
	read(t, resp)
	if h := resp.Header; h.Get("Access-Control-Allow-Origin") != app || h.Get("Access-Control-Allow-Credentials") != "" || strings.Join(h["Vary"], ",") != "Accept,Origin" {
		t.Errorf("answer: %v", h)
	}
	resp = g.post("/v1/chat/completions", "{", "Origin", app)
	if read(t, resp); resp.StatusCode != 400 || resp.Header.Get("Access-Control-Allow-Origin") != app {
		t.Errorf("an error can't be read: %v", resp.Header)
	}
	resp = g.post("/v1/chat/completions", chat("hi"), "Origin", "https://other.example")
	if read(t, resp); resp.Header.Get("Access-Control-Allow-Origin") != "" || !strings.Contains(strings.Join(resp.Header["Vary"], ","), "Origin") {
		t.Errorf("another origin: %v", resp.Header)
	}
	if resp = g.do(http.MethodOptions, "/v1/chat/completions", "Origin", "https://other.example", "Access-Control-Request-Method", "POST"); resp.Header.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("another origin's preflight: %v", resp.Header)
	}
	read(t, resp)
}

func TestOptionsTellWhatAPathTakes(t *testing.T) {
	g := newRig(t, 1)
	resp := g.do(http.MethodOptions, "/v1/models", "Origin", "https://app.example", "Access-Control-Request-Method", "GET")
	if read(t, resp); resp.StatusCode != 204 || resp.Header.Get("Allow") != "GET, HEAD, OPTIONS" || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if resp = g.do(http.MethodOptions, "/nothing"); resp.StatusCode != 404 {
		t.Errorf("nothing there: %d", resp.StatusCode)
	}
	read(t, resp)
	if resp = g.do(http.MethodHead, "/v1/models/m"); resp.StatusCode != 200 || read(t, resp) != "" {
		t.Errorf("HEAD: %d", resp.StatusCode)
	}
}

func TestHTTP2WithTLSStreams(t *testing.T) {
	g := newRig(t, 1)
	goOn := make(chan struct{})
	g.engines[0].answer(sse([]string{chunk}, func(w http.ResponseWriter, r *http.Request) {
		<-goOn // the first chunk is with the client
		io.WriteString(w, lastOnes)
	}))
	s := httptest.NewUnstartedServer(nil)
	s.Config = NewHTTPServer(g.proxy, g.proxy.config().Logger)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} // the test's own certificate
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(streamed(chat("hi"))))
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len(chunk))
	if _, err := io.ReadFull(resp.Body, first); err != nil || resp.ProtoMajor != 2 || string(first) != chunk {
		t.Fatalf("HTTP/%d: %q, %v", resp.ProtoMajor, first, err)
	}
	close(goOn)
	if rest := read(t, resp); rest != lastOnes {
		t.Errorf("ended with %q", rest)
	}
}
