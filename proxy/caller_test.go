package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvca/proxy/record"
	"kvca/proxy/tenant"
	"kvca/router"
)

// people are tenants by their keys.
type people map[string]*tenant.Tenant

func (p people) Find(h http.Header) (*tenant.Tenant, error) {
	if t := p[strings.TrimPrefix(h.Get("Authorization"), "Bearer ")]; t != nil {
		return t, nil
	}
	return nil, errors.New("no such key")
}

// book is an observer that remembers.
type book struct {
	mu   sync.Mutex
	list []record.Record
}

func (b *book) Ended(r *record.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := *r
	if r.Decision != nil {
		d := *r.Decision
		c.Decision = &d
	}
	b.list = append(b.list, c)
}

// last waits for the n-th record.
func (b *book) last(g *rig, n int) (r record.Record) {
	g.Helper()
	g.await(fmt.Sprintf("record %d", n), func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.list) < n {
			return false
		}
		r = b.list[n-1]
		return true
	})
	return r
}

func with(edit func(*Config)) rigOption {
	return func(c *Config, _ *router.Config, _ *poolConfig) { edit(c) }
}

func TestKeysDoNotReachBackendsAndPriorityIsTheTenants(t *testing.T) {
	g := newRig(t, 1, with(func(c *Config) {
		c.EnginePriority = true
		c.Tenants = people{
			"gold": {Name: "gold", Priority: 100},
			"us":   {Name: "us", Trusted: true},
		}
	}))
	var seen http.Header
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		chatAnswer(w, r)
	})
	for _, c := range []struct{ key, sent, want string }{
		{"gold", "", "100"},
		{"gold", "7", "100"},
		{"us", "7", "7"},
	} {
		g.expect(200, "/v1/chat/completions", chat("hi"), "Authorization", "Bearer "+c.key, "X-Api-Key", c.key, "X-Gateway-Priority", c.sent, "X_Gateway_Priority", "9")
		if got := seen.Get("X-Gateway-Priority"); got != c.want {
			t.Errorf("key %s, priority %q sent: the backend is told %q, want %q", c.key, c.sent, got, c.want)
		}
		for name := range seen {
			if slices.Contains(keyHeaders, name) || c.key != "us" && strings.Contains(name, "_") {
				t.Errorf("key %s: the backend is sent %s", c.key, name)
			}
		}
	}
	if code := codeOf(t, g.expect(401, "/v1/messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`, "Authorization", "Bearer x")); code != "invalid_api_key" {
		t.Errorf("code %s", code)
	}
}

func TestATenantSeesItsModelsOnly(t *testing.T) {
	g := newRig(t, 1, with(func(c *Config) {
		c.Tenants = people{"a": {Name: "a", Models: []string{"m"}}, "b": {Name: "b", Models: []string{"other*"}}}
		c.Aliases = map[string]string{"alias": "m"}
	}))
	g.addEngine("e1", "other-model")
	g.waitReady()
	g.await("both models", func() bool { return len(g.pool.Models()) == 2 })
	for key, want := range map[string]string{"a": "alias m", "b": "other-model"} {
		req := httptest.NewRequest(http.MethodGet, "/v1/models", nil)
		req.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		g.proxy.ServeHTTP(w, req)
		for _, id := range []string{"m", "alias", "other-model"} {
			listed := strings.Contains(w.Body.String(), `"id": "`+id+`"`)
			if allowed := slices.Contains(strings.Fields(want), id); listed != allowed {
				t.Errorf("key %s: %s listed %v, want %v", key, id, listed, allowed)
			}
		}
	}
	for _, model := range []string{"m", "alias"} {
		body := strings.Replace(chat("hi"), `"model":"m"`, `"model":"`+model+`"`, 1)
		if code := codeOf(t, g.expect(403, "/v1/chat/completions", body, "Authorization", "Bearer b")); code != "model_not_allowed" {
			t.Errorf("%s: %s", model, code)
		}
		g.expect(200, "/v1/chat/completions", body, "Authorization", "Bearer a")
	}
}

func TestSteeringFieldsGoWhateverTheBodyCallsItself(t *testing.T) {
	g := newRig(t, 1, with(func(c *Config) {
		c.Steering = Steering{Strip: []string{"id_slot", "bootstrap_*"}, Headers: true}
		c.Tenants = people{"a": {Name: "a", CacheSalt: "salt of a"}, "us": {Name: "us", Trusted: true}}
	}))
	var seen string
	var header http.Header
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen, header = string(b), r.Header.Clone()
		chatAnswer(w, r)
	})
	const body = `{"model":"m","id_slot":7,"bootstrap_room":1,"cache_salt":"mine","messages":[{"role":"user","content":"hi"}]}`
	for _, kind := range []string{"application/json", "text/plain", "multipart/form-data; boundary=x", "nonsense"} {
		g.expect(200, "/v1/chat/completions", body, "Authorization", "Bearer a", "Content-Type", kind, "X-Data-Parallel-Rank", "1")
		if strings.Contains(seen, "id_slot") || strings.Contains(seen, "bootstrap") || strings.Contains(seen, "mine") || !strings.Contains(seen, `"cache_salt":"salt of a"`) {
			t.Errorf("as %s the backend is sent %s", kind, seen)
		}
		if header.Get("X-Data-Parallel-Rank") != "" {
			t.Errorf("as %s the backend is told a rank", kind)
		}
	}
	g.expect(200, "/v1/chat/completions", body, "Authorization", "Bearer us")
	if seen != body {
		t.Errorf("a trusted client's body became %s", seen)
	}
	g.expect(200, "/v1/embeddings", `{"model":"m","input":"x","id_slot":1}`, "Authorization", "Bearer a", "Content-Type", "text/plain")
	if seen != `{"model":"m","input":"x"}` {
		t.Errorf("embeddings were sent %s", seen)
	}
}

func TestNoBodyGetsAroundATenantsModels(t *testing.T) {
	g := newRig(t, 1, with(func(c *Config) {
		c.Tenants = people{"a": {Name: "a", Models: []string{"small"}}}
		c.Paths = []string{"/own"}
	}))
	g.addEngine("e1", "small")
	g.waitReady()
	g.await("both models", func() bool { return len(g.pool.Models()) == 2 })
	var bodies []string
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			bodies = append(bodies, r.URL.Path+" "+string(b))
			chatAnswer(w, r)
		})
	}
	for path, e := range g.proxy.config().endpoints {
		if e.local != nil || e.socket || e.anywhere {
			continue
		}
		for _, body := range []string{
			`{"model":"m","prompt":"x","messages":[]}`, `{"model":"small","Model":"m"}`, `{"model":"m","model":"small"}`, `{"mod\u0065l":"m","model":"small"}`,
			"\ufeff" + `{"model":"m"}`, `{"name":"m","model":"small"}`, `{"name":"m"}`, "model=m",
		} {
			if strings.Contains(body, "name") && e.style != ollamaStyle {
				continue // a name like any other
			}
			kinds := []string{"application/json", "text/plain", "application/x-www-form-urlencoded", ""}
			if !e.form && !e.foreign {
				kinds = append(kinds, "multipart/form-data; boundary=b")
			}
			for _, kind := range kinds {
				if strings.HasPrefix(kind, "multipart") {
					body += "\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsmall\r\n--b--\r\n"
				}
				resp := g.post(path, body, "Authorization", "Bearer a", "Content-Type", kind)
				if text := read(t, resp); resp.StatusCode < 400 {
					t.Errorf("%s as %q: %s: %d %s", path, kind, body, resp.StatusCode, text)
				}
			}
		}
	}
	for _, body := range bodies {
		t.Errorf("a backend was sent %s", body)
	}
	bodies = nil
	g.expect(200, "/api/chat", `{"model":"small","messages":[{"role":"user","content":"hi"}]}`, "Authorization", "Bearer a", "Content-Type", "application/x-www-form-urlencoded")
	if len(bodies) != 1 {
		t.Errorf("the tenant's own model: %q", bodies)
	}
}

func TestEachRequestHasARecord(t *testing.T) {
	b := new(book)
	g := newRig(t, 2, with(func(c *Config) {
		c.Observers = []record.Observer{b}
		c.Tenants = people{"a": {Name: "acme"}}
		c.Aliases = map[string]string{"alias": "m"}
		c.TrustedProxies = prefixes("127.0.0.0/8", "10.0.0.0/8")
	}))
	g.engines[0].answer(status(503))
	auth := []string{"Authorization", "Bearer a", "X-Forwarded-For", "203.0.113.9, 198.51.100.7, 10.1.1.1", "X-Request-Id", "id-1"}
	body := strings.Replace(chat(long(1, 3000)), `"model":"m"`, `"model":"alias"`, 1)
	g.expect(200, "/v1/chat/completions", body, auth...)
	r := b.last(g, 1)
	if r.ID != "id-1" || r.Client != netip.MustParseAddr("198.51.100.7") || r.Method != "POST" || r.Endpoint != "/v1/chat/completions" ||
		r.Model != "m" || r.Alias != "alias" || r.Tenant != "acme" || r.Status != 200 || r.Code != "" || r.BodyBytes != int64(len(body)) ||
		r.PromptTokens != 100 || r.CachedTokens != 60 || r.OutputTokens != 1 || r.Streamed {
		t.Errorf("%+v", r)
	}
	if r.Attempts < 1 || r.Attempts > 2 || r.Gateway <= 0 || r.FirstByte < r.Gateway || r.Duration < r.FirstByte || r.Decision == nil || r.Decision.Backend != "e1" {
		t.Errorf("%+v, decision %+v", r, r.Decision)
	}
	g.expect(401, "/v1/chat/completions", body)
	if r := b.last(g, 2); r.Status != 401 || r.Code != "invalid_api_key" || r.Tenant != "" || r.Decision != nil || r.PromptTokens != -1 || r.Attempts != 0 {
		t.Errorf("%+v", r)
	}
	g.expect(404, "/no/such/path", "", auth...)
	if r := b.last(g, 3); r.Endpoint != "other" || r.Code != "unknown_path" {
		t.Errorf("%+v", r)
	}
}

func TestRequestsWaitTheirTurnInFrontOfASaturatedPool(t *testing.T) {
	queue := tenant.NewQueue(tenant.QueueConfig{MaxWaiting: 4, MaxWait: time.Minute}, nil)
	b := new(book)
	g := newRig(t, 2, with(func(c *Config) { c.MaxActive, c.Queue, c.Observers = 1, queue, []record.Observer{b} }))
	inside, let := make(chan string, 16), make(chan struct{})
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			inside <- e.id
			<-let
			chatAnswer(w, r)
		})
	}
	var clients sync.WaitGroup
	codes := make(chan int, 16)
	send := func() {
		clients.Go(func() {
			resp, err := g.try("/v1/chat/completions", chat("hi"))
			if err != nil {
				t.Error(err)
				return
			}
			read(t, resp)
			codes <- resp.StatusCode
		})
	}
	for range 6 {
		send()
	}
	g.await("four wait and two are served", func() bool { return queue.WaitingAll() == 4 && len(inside) == 2 })
	if text := g.expect(429, "/v1/chat/completions", chat("one too many")); codeOf(t, text) != "queue_full" {
		t.Errorf("%s", text)
	}
	for range 6 {
		let <- struct{}{}
	}
	clients.Wait()
	close(codes)
	for code := range codes {
		if code != 200 {
			t.Errorf("status %d", code)
		}
	}
	waited := 0
	for n := range 7 {
		if r := b.last(g, n+1); r.Status == 200 && r.Queued > 0 {
			waited++
		}
	}
	if waited != 4 || queue.WaitingAll() != 0 {
		t.Errorf("%d requests waited, %d still do", waited, queue.WaitingAll())
	}
}

func TestAChangedConfigurationIsInForceForTheNextRequest(t *testing.T) {
	g := newRig(t, 1)
	began, let := make(chan struct{}), make(chan struct{})
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-let
		chatAnswer(w, r)
	})
	var answer *http.Response
	var one sync.WaitGroup
	one.Go(func() { answer = g.post("/v1/chat/completions", chat("hi")) })
	<-began
	next := g.proxy.config().Config
	next.DebugHeaders, next.Aliases = false, map[string]string{"alias": "m"}
	if err := g.proxy.Reconfigure(next); err != nil {
		t.Fatal(err)
	}
	let <- struct{}{}
	one.Wait()
	if read(t, answer); answer.Header.Get("X-KVCA-Node") == "" {
		t.Error("a request that was under way goes by another configuration")
	}
	g.engines[0].answer(chatAnswer)
	resp := g.post("/v1/chat/completions", strings.Replace(chat("hi"), `"model":"m"`, `"model":"alias"`, 1))
	if text := read(t, resp); resp.StatusCode != 200 || resp.Header.Get("X-KVCA-Node") != "" {
		t.Errorf("%d %s %v", resp.StatusCode, text, resp.Header)
	}
	next.Attempts = 0
	if err := g.proxy.Reconfigure(next); err == nil || g.proxy.config().Attempts == 0 {
		t.Errorf("a configuration at fault is in force: %v", err)
	}
}

func TestKeysOfAWebSocketAreAllLookedAt(t *testing.T) {
	for _, c := range []struct {
		authorization, offers, left string
		keys                        []string // that Find sees
	}{
		{"", keyProtocol + "A, realtime", "realtime", []string{"A"}},
		{"Bearer B", keyProtocol + "A", "", []string{"B", "A"}},
		{"", keyProtocol + "A, " + keyProtocol + "B", "", []string{"A", "B"}},
		{"Bearer B", "realtime", "realtime", []string{"B"}},
	} {
		h := http.Header{"Sec-Websocket-Protocol": {c.offers}}
		if c.authorization != "" {
			h.Set("Authorization", c.authorization)
		}
		liftKey(h)
		var keys []string
		for _, name := range []string{"Authorization", "Api-Key"} {
			for _, value := range h[name] {
				if key := strings.TrimPrefix(value, "Bearer "); !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
		if !slices.Equal(keys, c.keys) || h.Get("Sec-Websocket-Protocol") != c.left {
			t.Errorf("%q offering %q: keys %q, want %q; left %q", c.authorization, c.offers, keys, c.keys, h.Get("Sec-Websocket-Protocol"))
		}
	}
}

func TestARealtimeAddressNamesOneModel(t *testing.T) {
	g := newRig(t, 1)
	for _, query := range []string{"model=m&model=other", "mod%65l=other&model=m", "model=other;&model=m"} {
		r := httptest.NewRequest(http.MethodGet, "/v1/realtime?"+query, nil)
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		g.proxy.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if n := g.engines[0].served.Load(); n != 0 {
		t.Errorf("%d requests reached the backend", n)
	}
}
