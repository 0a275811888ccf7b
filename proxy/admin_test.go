package proxy

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"kvca/router"
)

func (g *rig) adminDo(method, path, body string) (int, string) {
	g.Helper()
	req, err := http.NewRequest(method, g.admin.URL+path, strings.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	resp, err := g.admin.Client().Do(req)
	if err != nil {
		g.Fatal(err)
	}
	return resp.StatusCode, read(g, resp)
}

func TestStatusHasTheNamesThatScriptsRelyOn(t *testing.T) {
	g := newRig(t, 2)
	g.expect(200, "/v1/chat/completions", chat(long(1, 2000)))
	code, text := g.adminDo("GET", "/cluster/status", "")
	var s map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &s); err != nil || code != 200 {
		t.Fatalf("%d %v: %s", code, err, text)
	}
	has := func(where string, raw json.RawMessage, names string) {
		t.Helper()
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatalf("%s: %v in %s", where, err, raw)
		}
		for _, name := range strings.Fields(names) {
			if _, ok := m[name]; !ok {
				t.Errorf("%s lacks %q: %s", where, name, raw)
			}
		}
	}
	first := func(raw json.RawMessage) json.RawMessage {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
			t.Fatalf("no list: %s", raw)
		}
		return list[0]
	}
	has("status", json.RawMessage(text), "node cluster version ready members backends block_map reservations divergence")
	has("a member", first(s["members"]), "name address state ready boot lag_ms dirty")
	has("a backend", first(s["backends"]), "id url models health owner generation active novel_blocks running waiting kv_usage")
	has("block_map", s["block_map"], "blocks locations bytes max_bytes expired evicted")
	has("reservations", s["reservations"], "held granted refused degraded")
	if !strings.Contains(text, `"health": "healthy"`) || !strings.Contains(text, `"state": "alive"`) {
		t.Errorf("status %s", text)
	}
}

func TestExplainTellsWhyWithoutSideEffects(t *testing.T) {
	g := newRig(t, 3)
	first := g.post("/v1/chat/completions", chat(long(1, 3000)))
	read(t, first)
	at := first.Header.Get("X-KVCA-Backend")
	before, served := g.blocks.Stats(), g.engines[0].served.Load()
	var d router.Decision
	for range 5 {
		code, text := g.adminDo("POST", "/explain", chat(long(1, 3000), "fine", "more"))
		if err := json.Unmarshal([]byte(text), &d); err != nil || code != 200 {
			t.Fatalf("%d %v: %s", code, err, text)
		}
	}
	if d.Backend != at || d.Phase != "follow-up" || d.Reason != router.ReasonHit || d.MatchedBlocks < 5 || len(d.Candidates) != 3 || d.BlockUnit != "cbr" {
		t.Errorf("decision %+v, served by %s", d, at)
	}
	if g.blocks.Stats() != before || g.engines[0].served.Load() != served || g.ledger.Counters().Granted != 1 {
		t.Error("explaining changed something")
	}
	for body, want := range map[string]string{`{`: "invalid_json", `{"model":"x"}`: "model_not_found"} {
		if _, text := g.adminDo("POST", "/explain", body); codeOf(t, text) != want {
			t.Errorf("%s: %s", body, text)
		}
	}
	if code, text := g.adminDo("POST", "/explain?endpoint=/v1/completions", `{"model":"m","prompt":"x"}`); code != 200 {
		t.Errorf("%d: %s", code, text)
	}
	if code, text := g.adminDo("POST", "/explain?endpoint=/nope", `{}`); code != 400 || codeOf(t, text) != "unknown_endpoint" {
		t.Errorf("%d: %s", code, text)
	}
}

func TestBackendsAreAddedDrainedAndRemovedWhileItRuns(t *testing.T) {
	g := newRig(t, 1)
	extra := g.addEngine("late", "m2")
	g.waitReady()
	g.expect(200, "/v1/chat/completions", strings.Replace(chat("hi"), `"m"`, `"m2"`, 1))
	if code, text := g.adminDo("POST", "/backends", `{"id":"late","url":"`+extra.URL+`"}`); code != 409 || codeOf(t, text) != "backend_exists" {
		t.Errorf("%d: %s", code, text)
	}
	for _, body := range []string{`{`, `{"url":"ftp://x"}`, `{"url":"http://x","speed":1}`, `{"id":"y","url":"http://x","weight":-1}`} {
		if code, text := g.adminDo("POST", "/backends", body); code != 400 {
			t.Errorf("%s: %d %s", body, code, text)
		}
	}
	if code, _ := g.adminDo("POST", "/backends/late/drain", ""); code != 204 {
		t.Errorf("drain: %d", code)
	}
	g.expect(503, "/v1/chat/completions", strings.Replace(chat("hi"), `"m"`, `"m2"`, 1))
	if code, _ := g.adminDo("POST", "/backends/late/undrain", ""); code != 204 {
		t.Errorf("undrain: %d", code)
	}
	g.await("available again", func() bool { return g.facts("late").Standing() == router.Available })
	if code, _ := g.adminDo("DELETE", "/backends/late", ""); code != 204 {
		t.Errorf("remove: %d", code)
	}
	if code, text := g.adminDo("DELETE", "/backends/late", ""); code != 404 || codeOf(t, text) != "backend_not_found" {
		t.Errorf("%d: %s", code, text)
	}
	if code, _ := g.adminDo("POST", "/backends", `{"id":"late","url":"`+extra.URL+`","weight":2,"models":["m2"]}`); code != 201 {
		t.Errorf("add: %d", code)
	}
	g.waitReady()
	g.expect(200, "/v1/chat/completions", strings.Replace(chat("hi"), `"m"`, `"m2"`, 1))
	_, text := g.adminDo("GET", "/backends", "")
	if !strings.Contains(text, `"weight": 2`) {
		t.Errorf("backends %s", text)
	}
}

func TestBackendsWithIDsThatAreNoneAreNotAdded(t *testing.T) {
	g := newRig(t, 1)
	for _, id := range []string{"*", "a b", "a/b", "gpu\\u202e1", "a\\n", strings.Repeat("x", 129)} {
		code, text := g.adminDo("POST", "/backends", `{"id":"`+id+`","url":"http://127.0.0.1:9"}`)
		if code != 400 || codeOf(t, text) != "invalid_backend" || !strings.Contains(text, "want 1 to 128 letters") {
			t.Errorf("%s: %d %s", id, code, text)
		}
	}
	if n := len(g.pool.All()); n != 1 {
		t.Errorf("there are %d backends", n)
	}
}

func TestHealthReadinessAndTheOtherPaths(t *testing.T) {
	g := newRig(t, 1)
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/internal/kv-index": `"block_count": 0`, "/debug/pprof/goroutine?debug=1": "goroutine profile"} {
		if code, text := g.adminDo("GET", path, ""); code != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, _ := g.adminDo("GET", "/nope", ""); code != 404 {
		t.Errorf("/nope: %d", code)
	}
	draining := NewAdmin(AdminConfig{Proxy: g.proxy, Map: g.blocks, Ledger: g.ledger, Gatherer: g.registry, Draining: func() bool { return true }})
	s := start(t, draining, g.proxy.config().Logger)
	if resp := mustGet(t, s.URL+"/readyz"); resp.StatusCode != 503 {
		t.Errorf("draining: %d", resp.StatusCode)
	} else {
		read(t, resp)
	}
}

// What `promtool check metrics` checks, by the same library.
func TestMetricsAreClean(t *testing.T) {
	g := newRig(t, 2)
	g.expect(200, "/v1/chat/completions", chat(long(1, 2000)))
	g.expect(200, "/v1/chat/completions", chat(long(1, 2000), "fine", "more"))
	text := g.metrics()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, want := range []string{
		`kvca_requests_total{code="200",endpoint="/v1/chat/completions",model="m"} 2`,
		`kvca_decisions_total{policy="cost",reason="miss"} 1`, `kvca_decisions_total{policy="cost",reason="hit"} 1`,
		"kvca_matched_blocks_total", "kvca_novel_blocks_total", "kvca_chain_blocks_total", "kvca_predicted_cached_tokens_total",
		"kvca_time_to_first_byte_seconds_bucket", "kvca_request_duration_seconds_bucket", "kvca_gateway_seconds_bucket",
		"kvca_block_map_blocks", "kvca_block_map_bytes", "kvca_block_map_expired_total", "kvca_block_map_evicted_total", "kvca_build_info",
		`kvca_backend_active_requests{backend="e0"} 0`, `kvca_backend_novel_bytes{backend="e0"} 0`, `kvca_backend_up{backend="e0"}`, "kvca_backend_breaker_opens_total",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	var names []string
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			names = append(names, strings.Fields(name)[0])
		}
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("README does not list the metric %s", name)
		}
	}
	if i := slices.IndexFunc(names, func(n string) bool { return !strings.HasPrefix(n, "kvca_") }); i >= 0 {
		t.Errorf("%s lacks the prefix", names[i])
	}
}
