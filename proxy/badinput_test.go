package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"kvca/router"
)

// Bad input of every kind gets the right status and a stable code in the shape
// of the endpoint's API; no engine sees it, and nothing is logged as an error
// (the rig checks that).
func TestBadInputIsRefusedInShape(t *testing.T) {
	g := newRig(t, 1)
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	for _, c := range []struct {
		name, body string
		status     int
		code       string
	}{
		{"no body", "", 400, "invalid_json"},
		{"cut off", `{"model":"m","messages":[`, 400, "invalid_json"},
		{"not JSON", `hello`, 400, "invalid_json"},
		{"trailing garbage", chat("hi") + "x", 400, "invalid_json"},
		{"two values", chat("hi") + chat("hi"), 400, "invalid_json"},
		{"BOM", "\ufeff" + chat("hi"), 400, "invalid_json"},
		{"an array", `[]`, 400, "not_an_object"},
		{"null", `null`, 400, "not_an_object"},
		{"a string", `"x"`, 400, "not_an_object"},
		{"bad escape", `{"model":"m","messages":[{"role":"user","content":"\x"}]}`, 400, "invalid_json"},
		{"control character", "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\nb\"}]}", 400, "invalid_json"},
		{"invalid UTF-8", "{\"model\":\"m\",\"x\":\"\xff\"}", 400, "invalid_utf8"},
		{"too deep", `{"model":"m","x":` + deep + `}`, 400, "too_deep"},
		{"endless nesting", `{"model":"m","x":` + strings.Repeat(`[`, 1<<20), 400, "too_deep"},
		{"no model", `{"messages":[]}`, 400, "missing_model"},
		{"null model", `{"model":null,"messages":[]}`, 400, "missing_model"},
		{"number for a model", `{"model":7,"messages":[]}`, 400, "missing_model"},
		{"empty model", `{"model":"","messages":[]}`, 400, "missing_model"},
		{"unknown model", `{"model":"nope","messages":[]}`, 404, "model_not_found"},
		{"unknown model, bad messages", `{"model":"nope","messages":7}`, 404, "model_not_found"},
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"} {
			text := g.expect(c.status, path, c.body)
			if code := codeOf(t, text); code != c.code {
				t.Errorf("%s to %s: code %s, want %s", c.name, path, code, c.code)
			}
			anthropicShape := strings.HasPrefix(text, `{"type":"error","error":{"type":"`)
			if anthropicShape != (path == "/v1/messages") {
				t.Errorf("%s to %s: the shape is wrong: %s", c.name, path, text)
			}
		}
	}
	if n := g.engines[0].served.Load(); n != 0 {
		t.Errorf("the engine saw %d bad requests", n)
	}
}

// What messages contain is the engine's to judge.
func TestWhatEnginesJudgePasses(t *testing.T) {
	g := newRig(t, 1)
	for _, body := range []string{
		`{"model":"m"}`, `{"model":"m","messages":[]}`, `{"model":"m","messages":7}`, `{"model":"m","messages":[1,null,"x"]}`,
		`{"model":"m","messages":[{"role":"user","content":"\ud800"}]}`, `{"model":"m","temperature":1e999999999,"x":1e999999999}`,
		`{"model":"m","model":"m","messages":[{"content":"x","role":"user"}],"messages":[]}`,
	} {
		g.expect(200, "/v1/chat/completions", body)
	}
}

func TestBodiesBeyondTheLimit(t *testing.T) {
	g := newRig(t, 1)
	for _, announced := range []bool{true, false} {
		req, _ := http.NewRequest(http.MethodPost, g.client.URL+"/v1/chat/completions", io.LimitReader(zeros{}, 64<<20))
		if announced {
			req.ContentLength = 64 << 20
		}
		resp, err := g.client.Client().Do(req)
		if err != nil {
			t.Fatalf("announced %v: %v", announced, err)
		}
		if code := codeOf(t, read(t, resp)); resp.StatusCode != 413 || code != "body_too_large" {
			t.Errorf("announced %v: status %d, code %s", announced, resp.StatusCode, code)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestBodiesShareABudget(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.MaxBodyBytes, c.BodyBudget = 1<<20, 1<<20 })
	inside, goOn := make(chan struct{}), make(chan struct{})
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-goOn
		chatAnswer(w, r)
	})
	done := make(chan string)
	go func() { done <- g.expect(200, "/v1/chat/completions", chat(long(1, 900_000))) }()
	<-inside
	resp := g.post("/v1/chat/completions", chat(long(2, 900_000)))
	if code := codeOf(t, read(t, resp)); resp.StatusCode != 503 || code != "gateway_busy" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, code %s, headers %v", resp.StatusCode, code, resp.Header)
	}
	close(goOn)
	<-done
}

func TestUnknownPathsAndMethods(t *testing.T) {
	g := newRig(t, 1)
	if code := codeOf(t, g.expect(404, "/v1/nothing", "{}")); code != "unknown_path" {
		t.Errorf("code %s", code)
	}
	resp := mustGet(t, g.client.URL+"/v1/chat/completions")
	if code := codeOf(t, read(t, resp)); resp.StatusCode != 405 || code != "method_not_allowed" || resp.Header.Get("Allow") != "POST" {
		t.Errorf("status %d, code %s, allow %q", resp.StatusCode, code, resp.Header.Get("Allow"))
	}
	text := read(t, mustGet(t, g.client.URL+"/v1/models/nope"))
	if code := codeOf(t, text); code != "model_not_found" {
		t.Errorf("code %s", code)
	}
}

func TestRequestIDsThatAreUnfitAreReplaced(t *testing.T) {
	g := newRig(t, 1)
	for _, id := range []string{strings.Repeat("x", 200), "two words"} {
		resp := g.post("/v1/chat/completions", chat("hi"), "X-Request-Id", id)
		read(t, resp)
		if got := resp.Header.Get("X-Request-Id"); got == id || len(got) != 32 {
			t.Errorf("%q became %q", id, got)
		}
	}
}

func TestHeadersHaveABound(t *testing.T) {
	g := newRig(t, 1)
	resp, err := g.try("/v1/chat/completions", chat("hi"), "X-Big", strings.Repeat("x", 200<<10))
	if err == nil {
		read(t, resp)
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
}

// A model is known as long as a backend that served it is configured: 503 while
// all are down, never 404.
func TestAModelWhoseBackendsAreDownStaysKnown(t *testing.T) {
	g := newRig(t, 2)
	for _, e := range g.engines {
		e.Close()
	}
	for i := range 4 {
		resp := g.post("/v1/chat/completions", chat(long(i, 100)))
		if text := read(t, resp); resp.StatusCode != 502 && resp.StatusCode != 503 {
			t.Errorf("status %d: %s", resp.StatusCode, text)
		}
	}
	if err := g.pool.Remove("e0"); err != nil {
		t.Fatal(err)
	}
	if err := g.pool.Remove("e1"); err != nil {
		t.Fatal(err)
	}
	// With no model known at all nobody can say that this one does not exist.
	if code := codeOf(t, g.expect(503, "/v1/chat/completions", chat("hi"))); code != "no_backend" {
		t.Errorf("code %s", code)
	}
	g.engines = nil
	fmt.Fprint(io.Discard, g.metrics())
}
