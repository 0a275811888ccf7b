package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"kvca/state/cbr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// double is an engine in memory. It remembers what it was asked.
type double struct {
	id      string
	handler http.Handler

	mu    sync.Mutex
	dead  bool
	asked []question
}

type question struct{ target, body string }

func (e *double) ID() string { return e.id }

func (e *double) Do(ctx context.Context, method, target string, header http.Header, body []byte) (*http.Response, error) {
	e.mu.Lock()
	e.asked = append(e.asked, question{target, string(body)})
	dead := e.dead
	e.mu.Unlock()
	if dead {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, target, bytes.NewReader(body)).WithContext(ctx)
	r.Header = header
	e.handler.ServeHTTP(w, r)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return w.Result(), nil
}

func (e *double) kill(dead bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead = dead
}

// questions are the paths asked so far.
func (e *double) questions() (targets []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, q := range e.asked {
		targets = append(targets, q.target)
	}
	return targets
}

func (e *double) last() question {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[len(e.asked)-1]
}

// routes is an engine's HTTP API: a function from body to answer for each path.
type routes map[string]func(w http.ResponseWriter, r *http.Request, body map[string]json.RawMessage)

func (m routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := m[r.URL.Path]
	if !ok {
		http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
		return
	}
	var body map[string]json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f(w, r, body)
}

func reply(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

// ids are the doubles' tokens: a text's bytes.
func ids(texts ...[]byte) []uint32 {
	var list []uint32
	for _, text := range texts {
		for _, c := range text {
			list = append(list, uint32(c))
		}
	}
	return list
}

func chatIDs(body map[string]json.RawMessage) []uint32 { return ids(body["tools"], body["messages"]) }

// The paths of vLLM.
func renderChat(w http.ResponseWriter, _ *http.Request, body map[string]json.RawMessage) {
	reply(w, map[string]any{"request_id": "x", "token_ids": chatIDs(body), "features": nil, "cache_salt": nil})
}

func renderCompletion(w http.ResponseWriter, _ *http.Request, body map[string]json.RawMessage) {
	reply(w, []any{map[string]any{"token_ids": ids(body["prompt"])}})
}

func tokenize(w http.ResponseWriter, _ *http.Request, body map[string]json.RawMessage) {
	reply(w, map[string]any{"count": 1, "max_model_len": 9, "tokens": append(chatIDs(body), ids(body["prompt"])...), "token_strs": nil})
}

const (
	chatRender       = "/v1/chat/completions/render"
	completionRender = "/v1/completions/render"
)

func vllm() routes {
	return routes{chatRender: renderChat, completionRender: renderCompletion, "/tokenize": tokenize}
}

// tokenizerOnly is an engine without a renderer.
func tokenizerOnly() routes { return routes{"/tokenize": tokenize} }

// slow is a handler that takes a while, or until the caller leaves.
func slow(d time.Duration, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			h.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// always is a handler with one answer.
func always(status int, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	})
}

// localDouble is a local way by function.
type localDouble func(endpoint cbr.Endpoint, body []byte) ([]uint32, error)

func (f localDouble) Tokens(endpoint cbr.Endpoint, body []byte) ([]uint32, error) {
	return f(endpoint, body)
}

// trueLocal finds what the doubles find.
func trueLocal(endpoint cbr.Endpoint, body []byte) ([]uint32, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	if endpoint == cbr.Completions {
		return ids(m["prompt"]), nil
	}
	return chatIDs(m), nil
}

func withLocal(f localDouble) func(string) Local { return func(string) Local { return f } }

// newService returns a service that waits as long as it takes: for tests in real
// time.
func newService(t *testing.T, c Config) *Service {
	t.Helper()
	c.Budget, c.MaxBudget = time.Minute, time.Minute
	return newTimed(t, c)
}

// newTimed returns one with the default budget, for tests in virtual time.
func newTimed(t *testing.T, c Config) *Service {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

const hi = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`

// hiIDs are the tokens of hi.
var hiIDs = ids([]byte(`[{"role":"user","content":"hi"}]`))

func chat(key uint64, engines ...Engine) *Request {
	return &Request{Endpoint: cbr.Chat, Body: []byte(hi), Model: "m", Key: key, Bytes: int64(len(hi)), Engines: engines}
}

// want asks for tokens and checks where they come from.
func want(t *testing.T, s *Service, r *Request, source string, tokens []uint32) Answer {
	t.Helper()
	a, f := s.Tokens(t.Context(), r)
	if f != nil {
		t.Fatalf("got failure %v, want tokens of source %s", f, source)
	}
	if a.Source != source || !slices.Equal(a.Prompt.Tokens, tokens) {
		t.Fatalf("got %d tokens of source %s (%v), want %d of %s", len(a.Prompt.Tokens), a.Source, a.Prompt.Tokens, len(tokens), source)
	}
	if a.Exact != (source != FromEarlier) || a.Exact != (a.Miss == nil) {
		t.Fatalf("source %s: exact is %v, miss %v", source, a.Exact, a.Miss)
	}
	return a
}

func wantFailure(t *testing.T, s *Service, r *Request, reason string) *Failure {
	t.Helper()
	a, f := s.Tokens(t.Context(), r)
	if f == nil {
		t.Fatalf("got %d tokens of source %s, want failure %s", len(a.Prompt.Tokens), a.Source, reason)
	}
	if f.Reason != reason || f.Err == nil {
		t.Fatalf("got failure %v, want %s", f, reason)
	}
	return f
}

// cutter is an engine whose connection breaks in the middle of an answer.
type cutter struct{ double }

func (c *cutter) Do(context.Context, string, string, http.Header, []byte) (*http.Response, error) {
	text := io.MultiReader(strings.NewReader(`{"token_ids":[1,`), iotest.ErrReader(errors.New("reset by peer")))
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(text)}, nil
}
