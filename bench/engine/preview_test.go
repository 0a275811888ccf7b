package engine

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// ids reads a list of token ids.
func ids(t *testing.T, v any) (list tokens) {
	t.Helper()
	numbers, ok := v.([]any)
	if !ok {
		t.Fatalf("no list of ids but %v", v)
	}
	for _, n := range numbers {
		list = append(list, uint32(n.(float64)))
	}
	return list
}

// The members of a recorded answer are all there.
func TestARenderedChatHasTheRecordedMembers(t *testing.T) {
	raw, err := os.ReadFile("testdata/06_chat_render_plain.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Response struct{ JSON map[string]any }
	}
	if err := json.Unmarshal(raw, &recorded); err != nil || len(recorded.Response.JSON) == 0 {
		t.Fatalf("recording: %v", err)
	}
	got := object(t, ask(t, started(t, ServerConfig{}), "/v1/chat/completions/render", chatBody(user("Hello, world!"))))
	for name, want := range recorded.Response.JSON {
		if v, ok := got[name]; !ok || (want == nil) != (v == nil) {
			t.Errorf("%s is %v, recorded is %v", name, v, want)
		}
	}
}

func TestRenderSaysWhatTheEngineWillHave(t *testing.T) {
	s := started(t, ServerConfig{Speedup: 100})
	tool := m{"type": "function", "function": m{"name": "look", "parameters": m{"type": "object"}}}
	for _, body := range []m{
		chatBody(user("what is it?")),
		{"messages": []m{{"role": "system", "content": words(50, 1)}, user("why?")}, "tools": []m{tool}, "cache_salt": "s", "max_tokens": 3},
	} {
		rendered := object(t, ask(t, s, "/v1/chat/completions/render", body))
		if rendered["model"] != "sim" || rendered["cache_salt"] != body["cache_salt"] {
			t.Errorf("rendered for model %v with salt %v", rendered["model"], rendered["cache_salt"])
		}
		body["return_token_ids"] = true
		answer := object(t, ask(t, s, "/v1/chat/completions", body))
		if got, want := ids(t, rendered["token_ids"]), ids(t, answer["prompt_token_ids"]); !slices.Equal(got, want) {
			t.Errorf("rendered %v, the prompt was %v", got, want)
		}
	}
	var list []map[string]any
	w := ask(t, s, "/v1/completions/render", m{"prompt": []string{"one", "and another"}})
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list) != 2 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if got, want := ids(t, list[1]["token_ids"]), tokens(nil).appendText("and another"); !slices.Equal(got, want) {
		t.Errorf("rendered %v, want %v", got, want)
	}
	if id := list[1]["request_id"].(string); !strings.HasSuffix(id, "-1") {
		t.Errorf("the second of two has the id %q", id)
	}
}

func TestRenderRefusesWhatTheEndpointWould(t *testing.T) {
	s := started(t, ServerConfig{MaxModelLen: 100})
	for _, c := range []struct {
		path   string
		body   any
		status int
	}{
		{"/v1/chat/completions", m{"model": "other", "messages": []m{user("x")}}, http.StatusNotFound},
		{"/v1/chat/completions", m{"model": "sim"}, http.StatusBadRequest},
		{"/v1/chat/completions", chatBody(user(words(200, 1))), http.StatusBadRequest},
		{"/v1/completions", m{"prompt": 7}, http.StatusBadRequest},
		{"/v1/completions", `{`, http.StatusBadRequest},
	} {
		direct, rendered := ask(t, s, c.path, c.body), ask(t, s, c.path+"/render", c.body)
		if rendered.Code != c.status || rendered.Body.String() != direct.Body.String() {
			t.Errorf("%v: %d %s, the endpoint itself: %d %s", c.body, rendered.Code, rendered.Body, direct.Code, direct.Body)
		}
	}
}

func TestRenderFailsByItsOwnOrders(t *testing.T) {
	s := started(t, ServerConfig{Speedup: 100})
	order := func(body m) {
		t.Helper()
		object(t, ask(t, s, "/sim/fail", body))
	}
	order(m{"mode": "503", "of": "render"})
	if w := ask(t, s, "/v1/completions", m{"prompt": "x"}); w.Code != http.StatusOK {
		t.Errorf("a completion has status %d", w.Code)
	}
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
		if w := ask(t, s, "/v1/completions/render", m{"prompt": "x"}); w.Code != want {
			t.Errorf("render has status %d, want %d", w.Code, want)
		}
	}
	order(m{"mode": "500"})
	if w := ask(t, s, "/tokenize", m{"prompt": "x"}); w.Code != http.StatusOK {
		t.Errorf("/tokenize has status %d", w.Code)
	}
	order(m{"mode": "slow", "of": "render", "delay_ms": 40})
	begin := time.Now()
	if w := ask(t, s, "/v1/completions/render", m{"prompt": "x"}); w.Code != http.StatusOK || time.Since(begin) < 40*time.Millisecond {
		t.Errorf("a slow one has status %d after %v", w.Code, time.Since(begin))
	}
	if w := ask(t, s, "/sim/fail", m{"mode": "500", "of": "all"}); w.Code != http.StatusBadRequest {
		t.Errorf("an order about nothing has status %d", w.Code)
	}
}

func TestWhatAServerLacks(t *testing.T) {
	s := started(t, ServerConfig{Speedup: 100, Lacks: Lacks{Render: true, Tokenize: true, TokenIDs: true, CachedTokens: true}})
	for path, want := range map[string]int{
		"/v1/chat/completions/render": http.StatusForbidden, "/v1/completions/render": http.StatusForbidden,
		"/tokenize": http.StatusNotFound, "/detokenize": http.StatusNotFound,
	} {
		if w := ask(t, s, path, m{"prompt": "x"}); w.Code != want {
			t.Errorf("%s has status %d, want %d", path, w.Code, want)
		}
	}
	body := chatBody(user("hello"))
	body["return_token_ids"] = true
	got := object(t, ask(t, s, "/v1/chat/completions", body))
	if _, there := dig(t, got, "usage").(map[string]any)["prompt_tokens_details"]; there || got["prompt_token_ids"] != nil {
		t.Errorf("answer %v", got)
	}
}

// streamed puts the ids together that a stream's chunks carry.
func streamed(t *testing.T, w *timed) (prompt, answer tokens, firsts int) {
	t.Helper()
	for i, ev := range events(t, w.Body.String()) {
		if ev.data == "[DONE]" {
			continue
		}
		chunk := parse(t, []byte(ev.data))
		choice := dig(t, chunk, "choices", 0).(map[string]any)
		for _, v := range []any{chunk["prompt_token_ids"], choice["prompt_token_ids"]} {
			if v != nil {
				prompt, firsts = ids(t, v), firsts+1
				if i != 0 {
					t.Errorf("the prompt's ids are in chunk %d", i)
				}
			}
		}
		if v := choice["token_ids"]; v != nil {
			answer = append(answer, ids(t, v)...)
		}
	}
	return prompt, answer, firsts
}

func TestAStreamReturnsTokenIDsOnRequest(t *testing.T) {
	s := started(t, ServerConfig{Speedup: 20})
	for path, body := range map[string]m{
		"/v1/chat/completions": chatBody(user("hello")), "/v1/completions": {"prompt": "hello there!"},
	} {
		whole := func(stream, wanted bool) *timed {
			body["stream"], body["return_token_ids"], body["max_tokens"] = stream, wanted, 12
			return ask(t, s, path, body)
		}
		prompt, answer, firsts := streamed(t, whole(true, true))
		got := object(t, whole(false, true))
		want := got["prompt_token_ids"]
		if want == nil {
			want = dig(t, got, "choices", 0, "prompt_token_ids")
		}
		if firsts != 1 || !slices.Equal(prompt, ids(t, want)) {
			t.Errorf("%s: %d chunks with the prompt's ids %v, want one with %v", path, firsts, prompt, want)
		}
		if all := ids(t, dig(t, got, "choices", 0, "token_ids")); !slices.Equal(answer, all) || len(all) != 12 {
			t.Errorf("%s: the answer's ids are %v in the stream, %v as a whole", path, answer, all)
		}
		if prompt, answer, _ = streamed(t, whole(true, false)); prompt != nil || answer != nil {
			t.Errorf("%s: ids that nobody asked for", path)
		}
	}
}
