package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvca/proxy/tenant"
	"kvca/router"
	"kvca/state/quota"
)

// keepers makes each engine keep what it makes: resp_<engine>, and nothing else.
func (g *rig) keepers() {
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			own := "resp_" + e.id
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/v1/responses/"+own) {
				w.WriteHeader(http.StatusNotFound)
				io.WriteString(w, `{"error":{"message":"no such response"}}`)
				return
			}
			fmt.Fprintf(w, `{"id":%q,"object":"response","usage":{"input_tokens":5,"output_tokens":1}}`, own)
		})
	}
}

// secondNode is another gateway in front of the same backends, which has seen nothing.
func (g *rig) secondNode() *httptest.Server {
	cfg := g.proxy.config().Config
	cfg.Registerer = nil
	p, err := New(cfg, g.router, g.pool)
	if err != nil {
		g.Fatal(err)
	}
	return start(g.T, p, cfg.Logger)
}

func postTo(t testing.TB, url, body string) *http.Response {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestAResponseIsFoundThroughAnyNode(t *testing.T) {
	g := newRig(t, 4)
	g.keepers()
	other := g.secondNode()
	for range 5 {
		first := g.post("/v1/responses", `{"model":"m","input":"hi"}`)
		read(t, first)
		at := first.Header.Get("X-KVCA-Backend")
		next := postTo(t, other.URL+"/v1/responses", `{"model":"m","input":"more","previous_response_id":"resp_`+at+`"}`)
		read(t, next)
		if got, why := next.Header.Get("X-KVCA-Backend"), next.Header.Get("X-KVCA-Reason"); got != at || why != "pinned" {
			t.Fatalf("made at %s, continued through another node at %s for %s", at, got, why)
		}
		items := mustGet(t, other.URL+"/v1/responses/resp_"+at+"/input_items")
		if read(t, items); items.StatusCode != 200 || items.Header.Get("X-KVCA-Backend") != at {
			t.Errorf("read through another node: %d from %s", items.StatusCode, items.Header.Get("X-KVCA-Backend"))
		}
	}
}

func TestBackendsAreAskedOnceForAResponseThatNobodyKeeps(t *testing.T) {
	g := newRig(t, 4)
	g.keepers()
	for range 3 {
		lost := mustGet(t, g.client.URL+"/v1/responses/resp_nowhere")
		if code := codeOf(t, read(t, lost)); lost.StatusCode != 404 || code != "response_not_found" {
			t.Errorf("status %d, code %s", lost.StatusCode, code)
		}
	}
	for _, e := range g.engines {
		if n := e.served.Load(); n != 1 {
			t.Errorf("%s was asked %d times", e.id, n)
		}
	}
	if want := `kvca_response_searches_total{result="absent"} 1`; !strings.Contains(g.metrics(), want) {
		t.Errorf("the metrics lack %s", want)
	}
	// What nobody keeps is the engine's to refuse, in its own words.
	g.expect(200, "/v1/responses", `{"model":"m","input":"x","previous_response_id":"resp_nowhere"}`)
}

func TestAFollowUpWhoseKeeperIsAwayIsToldSo(t *testing.T) {
	g := newRig(t, 3)
	g.keepers()
	first := g.post("/v1/responses", `{"model":"m","input":"hi"}`)
	read(t, first)
	at := first.Header.Get("X-KVCA-Backend")
	for _, e := range g.engines {
		if e.id == at {
			e.CloseClientConnections()
			e.Close()
		}
	}
	g.await("the keeper is away", func() bool { return g.facts(at).Standing() == router.Unhealthy })
	other := g.secondNode()
	for node, url := range map[string]string{"the node that made it": g.client.URL, "another": other.URL} {
		for _, resp := range []*http.Response{
			postTo(t, url+"/v1/responses", `{"model":"m","input":"more","previous_response_id":"resp_`+at+`"}`),
			mustGet(t, url+"/v1/responses/resp_"+at),
		} {
			if code := codeOf(t, read(t, resp)); resp.StatusCode != 503 || code != "response_unavailable" || resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s: status %d, code %s", node, resp.StatusCode, code)
			}
		}
	}
}

func TestADrainedBackendStillAnswersForWhatItKeeps(t *testing.T) {
	g := newRig(t, 2)
	g.keepers()
	first := g.post("/v1/responses", `{"model":"m","input":"hi","background":true}`)
	read(t, first)
	at := first.Header.Get("X-KVCA-Backend")
	if err := g.pool.Drain(at); err != nil {
		t.Fatal(err)
	}
	if resp := mustGet(t, g.client.URL+"/v1/responses/resp_"+at); resp.StatusCode != 200 {
		t.Errorf("status %d: %s", resp.StatusCode, read(t, resp))
	} else {
		read(t, resp)
	}
	g.expect(200, "/v1/responses/resp_"+at+"/cancel", "")
}

// A search asks every backend: who may not send a request may not have one begun either.
func TestWhoIsRefusedHasNoBackendSearched(t *testing.T) {
	p := newPurse()
	g := newRig(t, 4, with(func(c *Config) {
		c.Tenants = people{"a": {Name: "a", Models: []string{"m"}, Limits: tenant.Limits{Concurrent: 1}}, "other": {Name: "other", Models: []string{"none"}}}
		c.Limiter = tenant.NewLimiter(p, nil)
	}))
	g.keepers()
	ask := func(method, path, body, key string) (int, string) {
		req, err := http.NewRequest(method, g.client.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := g.client.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, codeOf(t, read(t, resp))
	}
	asked := func() (n int64) {
		for _, e := range g.engines {
			n += e.served.Load()
		}
		return n
	}
	const followUp = `{"model":"m","input":"more","previous_response_id":"resp_unknown"}`
	over := p.Acquire(t.Context(), "a", quota.Limit{}, 0) // the one request that the tenant may have under way
	p.most["a"] = 1
	for _, c := range []struct {
		key, method, path, body string
		status                  int
		code                    string
	}{
		{"a", http.MethodPost, "/v1/responses", followUp, 429, "rate_limit_exceeded"},
		{"a", http.MethodGet, "/v1/responses/resp_unknown", "", 429, "rate_limit_exceeded"},
		{"a", http.MethodPost, "/v1/responses/resp_unknown/cancel", "", 429, "rate_limit_exceeded"},
		{"none", http.MethodPost, "/v1/responses", followUp, 401, "invalid_api_key"},
		{"none", http.MethodGet, "/v1/responses/resp_unknown", "", 401, "invalid_api_key"},
		{"other", http.MethodPost, "/v1/responses", followUp, 403, "model_not_allowed"},
	} {
		if status, code := ask(c.method, c.path, c.body, c.key); status != c.status || code != c.code {
			t.Errorf("%s %s with the key %s: %d %s, want %d %s", c.method, c.path, c.key, status, code, c.status, c.code)
		}
	}
	if n := asked(); !over.OK || n != 0 {
		t.Errorf("backends were asked %d times for who was refused", n)
	}
	p.Release("a")
	g.expect(200, "/v1/responses", followUp, "Authorization", "Bearer a")
	if n := asked(); n != int64(len(g.engines))+1 {
		t.Errorf("%d questions for who was not refused: want one to each backend, and the request", n)
	}
}

// A client that lost its stream asks for the rest of it by the id that it has seen.
func TestACutStreamIsResumedWhereItRuns(t *testing.T) {
	g := newRig(t, 3)
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			if r.Method == http.MethodGet {
				fmt.Fprintf(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"at\":%q,\"query\":%q}\n\n", e.id, r.URL.RawQuery)
				return
			}
			io.WriteString(w, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_7\"}}\n\n")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	}
	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.client.URL+"/v1/responses", strings.NewReader(`{"model":"m","input":"hi","stream":true,"background":true}`))
	resp, err := g.client.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	at := resp.Header.Get("X-KVCA-Backend")
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	leave()
	resp.Body.Close()
	g.await("the client has left", func() bool { return g.proxy.InFlight() == 0 })
	rest := read(t, mustGet(t, g.client.URL+"/v1/responses/resp_7?stream=true&starting_after=1"))
	if !strings.Contains(rest, `"at":"`+at+`","query":"stream=true&starting_after=1"`) {
		t.Errorf("begun at %s, resumed with %q", at, rest)
	}
}

func TestSearchesAreBounded(t *testing.T) {
	g := newRig(t, 2)
	var asked atomic.Int64
	goOn := make(chan struct{})
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			select {
			case <-goOn:
			case <-r.Context().Done():
			}
			http.NotFound(w, r)
		})
	}
	done := make(chan struct{})
	const clients = maxSearches + 20
	for i := range clients {
		go func() {
			read(t, mustGet(t, fmt.Sprintf("%s/v1/responses/resp_%d", g.client.URL, i)))
			done <- struct{}{}
		}()
	}
	g.await("all are here", func() bool { return g.proxy.InFlight() == clients && asked.Load() == 2*maxSearches })
	close(goOn)
	for range clients {
		<-done
	}
}

func TestOddResponseIDsAreNotAskedFor(t *testing.T) {
	for id, want := range map[string]bool{
		"resp_1": true, "resp-A.b": true, "": false, "..": false, "a/b": false, "a b": false, "a?b": false, "ä": false,
		strings.Repeat("x", maxResponseID): true, strings.Repeat("x", maxResponseID+1): false,
	} {
		if fitResponseID(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
	p := newPins()
	now := time.Now()
	if p.putAbsent("a", now); !p.isAbsent("a", now) || p.isAbsent("a", now.Add(absentTime)) || p.isAbsent("b", now) {
		t.Error("absence is not remembered for its time")
	}
}
