package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"kvca/router"
)

// ollamaChat is a body for Ollama, whose answer is streamed unless it says otherwise.
func ollamaChat(options string, messages ...string) string {
	var body map[string]json.RawMessage
	_ = json.Unmarshal([]byte(chat(messages...)), &body) // it is one
	return `{"model":"m",` + options + `"messages":` + string(body["messages"]) + `}`
}

// ndjson answers lines, each flushed; afterwards then is called.
func ndjson(lines []string, then func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-ndjson")
		for _, line := range lines {
			io.WriteString(w, line+"\n")
			http.NewResponseController(w).Flush()
		}
		if then != nil {
			then()
		}
	}
}

const (
	ollamaChunk = `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"x"},"done":false}`
	ollamaLast  = `{"model":"m","message":{"role":"assistant","content":""},"done":true,"prompt_eval_count":700,"eval_count":2}`
)

func TestOllamaChatsStayWhereTheirPrefixIs(t *testing.T) {
	g := newRig(t, 4)
	for _, e := range g.engines {
		e.answer(ndjson([]string{ollamaChunk, ollamaLast}, nil))
	}
	for i := range 10 {
		first := g.post("/api/chat", ollamaChat(`"options":{"temperature":1},"keep_alive":"5m",`, long(i, 2000)))
		if text := read(t, first); text != ollamaChunk+"\n"+ollamaLast+"\n" {
			t.Fatalf("the stream changed to %q", text)
		}
		next := g.post("/api/chat", ollamaChat(`"options":{"temperature":0},`, long(i, 2000), "x", "and then?"))
		read(t, next)
		if at, was := next.Header.Get("X-KVCA-Backend"), first.Header.Get("X-KVCA-Backend"); at != was || next.Header.Get("X-KVCA-Reason") != "hit" {
			t.Errorf("conversation %d went from %s to %s for %s", i, was, at, next.Header.Get("X-KVCA-Reason"))
		}
	}
	for _, want := range []string{`kvca_usage_prompt_tokens_total{model="m"} 14000`, `kvca_usage_completion_tokens_total{model="m"} 40`} {
		if !strings.Contains(g.metrics(), want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

func TestTextsForEnginesStayWhereTheirPrefixIs(t *testing.T) {
	for path, body := range map[string]string{
		"/api/generate": `{"model":"m","stream":false,"prompt":"`, "/generate": `{"parameters":{"max_new_tokens":9},"inputs":"`,
		"/generate_stream": `{"inputs":"`, "/completion": `{"n_predict":5,"prompt":"`, "/infill": `{"n_predict":5,"input_suffix":"","prompt":"`,
	} {
		t.Run(path, func(t *testing.T) {
			g := newRig(t, 4)
			for i := range 5 {
				first := g.post(path, body+long(i, 3000)+`"}`)
				read(t, first)
				next := g.post(path, body+long(i, 3000)+` and more"}`)
				read(t, next)
				if at, was := next.Header.Get("X-KVCA-Backend"), first.Header.Get("X-KVCA-Backend"); at != was || first.Header.Get("X-KVCA-Chain-Blocks") == "0" {
					t.Errorf("text %d went from %s to %s", i, was, at)
				}
			}
		})
	}
}

// SGLang's prompt has another name at the same path.
func TestSGLangsOwnPromptIsMatchedToo(t *testing.T) {
	g := newRig(t, 1)
	body := `{"text":"` + long(1, 3000) + `","sampling_params":{"temperature":`
	g.expect(200, "/generate", body+`0}}`)
	next := g.post("/generate", body+`1}}`)
	read(t, next)
	if n := next.Header.Get("X-KVCA-Matched-Blocks"); n == "0" {
		t.Error("nothing matched")
	}
}

func TestAnErrorInALineIsCountedAndPasses(t *testing.T) {
	g := newRig(t, 1)
	g.engines[0].answer(ndjson([]string{ollamaChunk, `{"error":"out of memory"}`}, nil))
	if text := g.expect(200, "/api/chat", ollamaChat("", "hi")); text != ollamaChunk+"\n"+`{"error":"out of memory"}`+"\n" {
		t.Errorf("the stream changed to %q", text)
	}
	if !strings.Contains(g.metrics(), "kvca_engine_error_events_total 1") {
		t.Error("the error was not counted")
	}
}

func TestABrokenStreamOfLinesEndsInALine(t *testing.T) {
	g := newRig(t, 1)
	g.engines[0].answer(ndjson([]string{ollamaChunk}, func() { panic(http.ErrAbortHandler) }))
	resp := g.post("/api/generate", `{"model":"m","prompt":"hi"}`)
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	last, ok := strings.CutPrefix(string(text), ollamaChunk+"\n")
	var fault struct{ Error, Code string }
	if json.Unmarshal([]byte(last), &fault) != nil || err == nil || !ok || fault.Code != "stream_broken" || fault.Error == "" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestEnginesUsageIsReadUnderItsOwnNames(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   usage
	}{
		"Ollama":       {ollamaLast, usage{700, -1, 2}},
		"llama.cpp":    {`{"content":"x","stop":true,"tokens_evaluated":90,"tokens_predicted":7,"timings":{"cache_n":60,"prompt_n":30}}`, usage{90, 60, 7}},
		"SGLang":       {`{"text":"x","meta_info":{"prompt_tokens":90,"completion_tokens":7,"cached_tokens":64}}`, usage{90, 64, 7}},
		"TGI has none": {`{"generated_text":"x","details":{"generated_tokens":3}}`, usage{0, -1, 0}},
		"no lies":      {`{"prompt_eval_count":10,"cached_tokens":20}`, usage{10, 10, 0}},
	} {
		w := newWatch(ollamaStyle, false)
		w.native = true
		w.feed([]byte(c.answer))
		w.end()
		if got, ok := w.usage(); got != c.want && (ok || c.want.prompt > 0) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestNativeErrorsHaveTheirAPIsShape(t *testing.T) {
	g := newRig(t, 1)
	for path, body := range map[string]string{"/api/chat": `{"model":"nope"}`, "/api/show": `{"model":"nope"}`, "/generate": `{"model":"nope","inputs":"x"}`} {
		var fault struct {
			Error, Code string
			Type        string `json:"error_type"`
		}
		text := g.expect(404, path, body)
		if err := json.Unmarshal([]byte(text), &fault); err != nil || fault.Code != "model_not_found" || fault.Error == "" || fault.Type != "not_found_error" {
			t.Errorf("%s: %s", path, text)
		}
	}
	if code := codeOf(t, g.expect(404, "/completion", `{"model":"nope"}`)); code != "model_not_found" {
		t.Errorf("/completion: code %s", code)
	}
}

func TestOllamasOtherPaths(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) {
		c.Aliases = map[string]string{"gpt": "llama3:latest"}
	})
	llama := g.addEngine("llama", "llama3:latest")
	g.waitReady()
	g.await("both models are known", func() bool { return len(g.pool.Models()) == 2 })
	llama.answer(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		io.WriteString(w, r.URL.Path+" "+string(b))
	})
	// A name without a tag has the default one.
	for _, path := range []string{"/api/show", "/api/embed", "/api/embeddings"} {
		if got := g.expect(200, path, `{"model":"llama3"}`); got != path+` {"model":"llama3:latest"}` {
			t.Errorf("%s: %s", path, got)
		}
	}
	var tags struct {
		Models []struct {
			Name, Model string
			Details     struct {
				ParentModel string `json:"parent_model"`
			}
		}
	}
	text := read(t, mustGet(t, g.client.URL+"/api/tags"))
	if err := json.Unmarshal([]byte(text), &tags); err != nil || len(tags.Models) != 3 || tags.Models[0].Name != "gpt" || tags.Models[0].Details.ParentModel != "llama3:latest" {
		t.Errorf("tags %s", text)
	}
	if resp := mustGet(t, g.client.URL+"/api/version"); resp.StatusCode != 200 {
		t.Errorf("version: %d %s", resp.StatusCode, read(t, resp))
	} else {
		read(t, resp)
	}
	if code := codeOf(t, g.expect(400, "/completion", `{"prompt":"x"}`)); code != "missing_model" {
		t.Errorf("of several models none was named: code %s", code)
	}
}
