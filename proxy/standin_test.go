package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"kvca/proxy/tenant"
	"kvca/router"
)

// newFallbackRig has the model m on e0 and n on "spare", which stands in for it.
func newFallbackRig(t *testing.T) (*rig, *atomic.Pointer[string]) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) {
		c.Aliases = map[string]string{"gpt": "m"}
		c.Fallbacks = map[string][]string{"m": {"nowhere", "n"}, "gone": {"n"}}
	})
	g.addEngine("spare", "n")
	g.waitReady()
	g.await("both models are known", func() bool { return len(g.pool.Models()) == 2 })
	body := new(atomic.Pointer[string])
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			text := string(b)
			body.Store(&text)
			if strings.HasPrefix(r.URL.Path, "/v1/responses") {
				io.WriteString(w, `{"id":"resp_1"}`)
				return
			}
			io.WriteString(w, e.id)
		})
	}
	return g, body
}

func TestAnotherModelStandsInWhereNoBackendCan(t *testing.T) {
	g, body := newFallbackRig(t)
	if resp := g.post("/v1/chat/completions", chat("hi")); read(t, resp) != "e0" || resp.Header.Get("X-KVCA-Model") != "" {
		t.Errorf("a model that is there was replaced by %s", resp.Header.Get("X-KVCA-Model"))
	}
	g.engines[0].CloseClientConnections()
	g.engines[0].Close()
	// The first request meets the loss, those that follow know of it.
	for i := range 3 {
		for _, name := range []string{"m", "gpt"} {
			resp := g.post("/v1/chat/completions", strings.Replace(chat("hi"), `"model":"m"`, `"model" : "`+name+`"`, 1))
			if text := read(t, resp); resp.StatusCode != 200 || text != "spare" || resp.Header.Get("X-KVCA-Model") != "n" {
				t.Fatalf("request %d of %s: %d %s, model %q", i, name, resp.StatusCode, text, resp.Header.Get("X-KVCA-Model"))
			}
			if want := strings.Replace(chat("hi"), `"model":"m"`, `"model" : "n"`, 1); *body.Load() != want {
				t.Errorf("the engine got %s", *body.Load())
			}
		}
		if i == 0 {
			g.await("the loss is known", func() bool { return g.facts("e0").Standing() == router.Unhealthy })
		}
	}
	if want := `kvca_fallback_models_total{model="m"} 6`; !strings.Contains(g.metrics(), want) {
		t.Errorf("the metrics lack %s", want)
	}
}

func TestABusyModelIsStoodInFor(t *testing.T) {
	g, _ := newFallbackRig(t)
	g.engines[0].answer(status(429))
	resp := g.post("/v1/chat/completions", chat(long(1, 2000)))
	if text := read(t, resp); resp.StatusCode != 200 || text != "spare" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	g.engines[1].answer(status(503))
	if text := g.expect(503, "/v1/chat/completions", chat("hi")); !strings.Contains(text, "engine says 503") {
		t.Errorf("answer %s", text)
	}
}

func TestAModelThatWasTakenAwayIsStoodInFor(t *testing.T) {
	g, _ := newFallbackRig(t)
	resp := g.post("/v1/completions", `{"model":"gone","prompt":"x"}`)
	if text := read(t, resp); resp.StatusCode != 200 || text != "spare" || resp.Header.Get("X-KVCA-Model") != "n" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if code := codeOf(t, g.expect(404, "/v1/completions", `{"model":"other","prompt":"x"}`)); code != "model_not_found" {
		t.Errorf("code %s", code)
	}
}

// Another model has not what this one's backend keeps.
func TestFollowUpsOfAResponseAreNotStoodInFor(t *testing.T) {
	g, _ := newFallbackRig(t)
	g.expect(200, "/v1/responses", `{"model":"m","input":"hi"}`)
	g.engines[0].CloseClientConnections()
	g.engines[0].Close()
	const more = `{"model":"m","input":"more","previous_response_id":"resp_1"}`
	if resp := g.post("/v1/responses", more); resp.StatusCode != 502 && resp.StatusCode != 503 {
		t.Errorf("before the loss may be known: %d", resp.StatusCode)
	} else {
		read(t, resp)
	}
	g.await("the loss is known", func() bool { return g.facts("e0").Standing() == router.Unhealthy })
	if code := codeOf(t, g.expect(503, "/v1/responses", more)); code != "response_unavailable" {
		t.Errorf("code %s", code)
	}
	if n := g.engines[1].served.Load(); n != 0 {
		t.Errorf("the other model got %d requests", n)
	}
}

func TestFaultsOfFallbacksAndOriginsAreNamed(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Aliases = map[string]string{"a": "m"}
	cfg.Fallbacks = map[string][]string{"m": {"m", "a", "n", "n", ""}, "a": {"n"}, "x": nil}
	cfg.AllowedOrigins = []string{"*", "https://ok.example:8443", "ok.example", "https://ok.example/", "https://OK.example"}
	cfg.MaxSockets, cfg.SocketIdle = -1, 0
	err := cfg.Validate()
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, want := range []string{`of "m": "m"`, `of "m": "a"`, `of "m": "n"`, `of "m": ""`, `of "a"`, `of "x"`, `"ok.example"`, `"https://ok.example/"`, `"https://OK.example"`, "max_websockets -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "8443") {
		t.Errorf("a good origin is a fault: %v", err)
	}
}

// keyed is tenants of which there is one, with the key "k".
type keyed struct{ tenant.Tenant }

func (k *keyed) Find(h http.Header) (*tenant.Tenant, error) {
	if h.Get("Authorization") != "Bearer k" {
		return nil, errors.New("the key is not known")
	}
	return &k.Tenant, nil
}

func TestATenantGetsNoModelThatIsNotItsOwn(t *testing.T) {
	g, _ := newFallbackRig(t)
	cfg := g.proxy.config().Config
	cfg.Tenants = &keyed{tenant.Tenant{Name: "t", Models: []string{"m"}}}
	if err := g.proxy.Reconfigure(cfg); err != nil {
		t.Fatal(err)
	}
	g.engines[0].answer(status(503))
	if text := g.expect(503, "/v1/chat/completions", chat("hi"), "Authorization", "Bearer k"); !strings.Contains(text, "engine says 503") {
		t.Errorf("answer %s", text)
	}
	if n := g.engines[1].served.Load(); n != 0 {
		t.Errorf("the other model got %d requests", n)
	}
}

// A browser can send its key in the subprotocols only. The engine does not see it.
func TestAKeyAmongSubprotocolsOpensAWebSocket(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.Tenants = &keyed{tenant.Tenant{Name: "t"}} })
	g.engines[0].answer(socketEngine(func(a accepted) { io.WriteString(a, a.request.Header.Get("Sec-WebSocket-Protocol")) }))
	_, _, resp := g.dial("/v1/realtime", "Sec-WebSocket-Protocol: realtime\r\n", "")
	if code := codeOf(t, read(t, resp)); resp.StatusCode != 401 || code != "invalid_api_key" {
		t.Errorf("without a key: %d %s", resp.StatusCode, code)
	}
	_, r, resp := g.dial("/v1/realtime", "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.k\r\n", "")
	if text, _ := io.ReadAll(r); resp.StatusCode != 101 || string(text) != "realtime" {
		t.Errorf("%d, the engine was offered %q", resp.StatusCode, text)
	}
}
