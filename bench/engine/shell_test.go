package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// started returns a running server that ends with the test. In a synctest bubble it runs in virtual time.
func started(t *testing.T, cfg ServerConfig) *Server {
	t.Helper()
	s := NewServer(cfg)
	s.Start(context.Background())
	t.Cleanup(s.Close)
	return s
}

// timed is a response that remembers when its headers and its data were flushed.
type timed struct {
	*httptest.ResponseRecorder
	begin         time.Time
	headers, data time.Duration
	flushes       int
}

func newTimed() *timed { return &timed{ResponseRecorder: httptest.NewRecorder(), begin: time.Now()} }

func (w *timed) Flush() {
	w.flushes++
	if w.flushes == 1 {
		w.headers = time.Since(w.begin)
	}
	if w.data == 0 && w.Body.Len() > 0 {
		w.data = time.Since(w.begin)
	}
	w.ResponseRecorder.Flush()
}

// ask sends a body, given as JSON text or as a value, and returns the answer.
func ask(t *testing.T, s *Server, path string, body any) *timed {
	t.Helper()
	w := newTimed()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(jsonOf(t, body))))
	return w
}

func get(s *Server, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	if text, ok := v.(string); ok {
		return []byte(text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// object reads an answer of status 200.
func object(t *testing.T, w *timed) map[string]any {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return parse(t, w.Body.Bytes())
}

func parse(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// at follows a path of members and indices.
func dig(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("no member %q of path %v in %v", p, path, v)
			}
			v = m[p]
		case int:
			l, ok := v.([]any)
			if !ok || p >= len(l) {
				t.Fatalf("no element %d of path %v in %v", p, path, v)
			}
			v = l[p]
		}
	}
	return v
}

// sse is one server-sent event.
type sse struct{ name, data string }

func events(t *testing.T, body string) (list []sse) {
	t.Helper()
	for _, chunk := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		var ev sse
		for _, line := range strings.Split(chunk, "\n") {
			switch key, value, _ := strings.Cut(line, ": "); key {
			case "event":
				ev.name = value
			case "data":
				ev.data = value
			default:
				t.Fatalf("unexpected line %q", line)
			}
		}
		list = append(list, ev)
	}
	return list
}

// words is a text of n tokens.
func words(n int, seed uint64) string { return answerText(seed, n, tokenBytes) }

type m = map[string]any

func chatBody(turns ...m) m { return m{"model": "sim", "messages": turns} }

func user(text string) m { return m{"role": "user", "content": text} }

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
