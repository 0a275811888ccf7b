package engine

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"kvca/state/virtualtime"
)

// capture is a request to a real engine with its answer.
type capture struct {
	Method, Path string
	Request      json.RawMessage
	Response     struct {
		Status int
		JSON   json.RawMessage
	}
}

func load(t *testing.T, name string) (c capture) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

type vllmError struct {
	Error struct {
		Message, Type string
		Param         *string
		Code          int
	}
}

// Refusals have the status, type, code, parameter and, where it is the engine's own, the wording of real ones.
func TestRefusalsMatchCapturedOnes(t *testing.T) {
	for _, c := range []struct {
		file    string
		body    string // instead of the captured one
		wording bool
	}{
		{file: "07_err_bad_type.json"},
		{file: "07_err_empty_salt.json", wording: true},
		{file: "07_err_invalid_json.json", body: `{"model": "tiny-qwen3", `},
		{file: "07_err_max_tokens_too_large.json", wording: true},
		{file: "07_err_messages_missing.json"},
		{file: "07_err_unknown_model.json", wording: true},
		{file: "07_err_prompt_too_long.json", body: `{"prompt":[5` + strings.Repeat(",5", 2999) + `]}`, wording: true},
	} {
		t.Run(c.file, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				s := started(t, ServerConfig{Model: "tiny-qwen3", MaxModelLen: 2048})
				golden := load(t, c.file)
				body := string(golden.Request)
				if c.body != "" {
					body = c.body
				}
				w := ask(t, s, golden.Path, body)
				var got, want vllmError
				if json.Unmarshal(w.Body.Bytes(), &got) != nil || json.Unmarshal(golden.Response.JSON, &want) != nil {
					t.Fatalf("no error in %s", w.Body)
				}
				if !c.wording {
					got.Error.Message, want.Error.Message = "", ""
				}
				a, b := string(jsonOf(t, got)), string(jsonOf(t, want))
				if w.Code != golden.Response.Status || a != b {
					t.Errorf("status %d\n%s, captured %d\n%s", w.Code, a, golden.Response.Status, b)
				}
			})
		})
	}
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	s := NewServer(ServerConfig{})
	defer s.Close()
	w := get(s, "/v1/nope")
	if want := load(t, "07_err_not_found.json"); w.Code != want.Response.Status || shape(parse(t, w.Body.Bytes())) != shape(parse(t, want.Response.JSON)) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

func TestMoreRefusals(t *testing.T) {
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/completions", `{}`, 400},
		{"/v1/completions", `{"prompt":[]}`, 400},
		{"/v1/completions", `{"prompt":{"a":1}}`, 400},
		{"/v1/completions", `{"prompt":[-1]}`, 400},
		{"/v1/completions", `{"prompt":"x","n":0}`, 400},
		{"/v1/completions", `{"prompt":"x","max_tokens":0}`, 400},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":5}]}`, 400},
		{"/v1/chat/completions", `{"messages":"x"}`, 400},
		{"/v1/chat/completions", `{"messages":[],"tool_choice":"required"}`, 400},
		{"/v1/chat/completions", ``, 400},
		{"/v1/responses", `{}`, 400},
		{"/v1/responses", `{"input":"x","previous_response_id":"resp_none"}`, 404},
		{"/v1/messages", `{"messages":[]}`, 400},
		{"/v1/embeddings", `{"input":"x","dimensions":-1}`, 400},
		{"/v1/rerank", `{"query":"x"}`, 400},
		{"/detokenize", `{}`, 400},
		{"/sim/fail", `{"mode":"sideways"}`, 400},
	} {
		virtualtime.Test(t, func(t *testing.T) {
			s := started(t, ServerConfig{})
			w := ask(t, s, c.path, c.body)
			if w.Code != c.status || dig(t, parse(t, w.Body.Bytes()), "error", "message") == "" {
				t.Errorf("%s %s: status %d, want %d: %s", c.path, c.body, w.Code, c.status, w.Body)
			}
		})
	}
}

func TestBodiesAreBounded(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{MaxBodyBytes: 1000})
		if w := ask(t, s, "/v1/completions", m{"prompt": words(1000, 1)}); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d", w.Code)
		}
	})
}

func TestAServerThatIsNotRunningRefuses(t *testing.T) {
	s := NewServer(ServerConfig{})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(`{"prompt":"x"}`)))
	if health := get(s, "/health"); w.Code != 503 || health.Code != 503 {
		t.Errorf("status %d, health %d, want 503", w.Code, health.Code)
	}
	s.Close()
	s.Close()
}

// No body may make the server panic or answer with other than JSON.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}],"max_tokens":1}`,
		`{"prompt":[[1,2],[3]],"max_tokens":1,"input":[{"type":"function_call","name":"f"}],"system":[{"text":"x"}]}`,
		`{"tools":[{"name":"f","function":{"name":"f"}}],"tool_choice":"required","messages":[],"input":"x","text_1":"a","text_2":["b"]}`,
		`{"prompt":[ ],"input":[[]],"messages":[{"content":[1]}]}`, `[]`, `{`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		virtualtime.Test(t, func(t *testing.T) {
			s := started(t, ServerConfig{MaxModelLen: 256})
			for _, path := range []string{
				"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/v1/rerank", "/v1/score",
				"/tokenize", "/detokenize",
			} {
				if w := ask(t, s, path, body); w.Header().Get("Content-Type") == "application/json" {
					parse(t, w.Body.Bytes())
				}
			}
			if s.Live() != 0 {
				t.Errorf("%d requests left", s.Live())
			}
		})
	})
}
