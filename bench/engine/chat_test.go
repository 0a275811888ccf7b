package engine

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"kvca/state/virtualtime"
)

func TestAFollowUpHitsPromptAndAnswer(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		first := chatBody(m{"role": "system", "content": words(100, 1)}, user(words(50, 2)))
		first["max_tokens"] = 100
		got := object(t, ask(t, s, "/v1/chat/completions", first))
		answer := dig(t, got, "choices", 0, "message", "content")
		prompt := int(dig(t, got, "usage", "prompt_tokens").(float64))
		if cached := dig(t, got, "usage", "prompt_tokens_details", "cached_tokens"); cached != 0.0 {
			t.Errorf("%v tokens cached in an empty engine", cached)
		}
		second := chatBody(m{"role": "system", "content": words(100, 1)}, user(words(50, 2)),
			m{"role": "assistant", "content": answer}, user("go on"))
		got = object(t, ask(t, s, "/v1/chat/completions", second))
		// The last sampled token's keys are never computed, and only full blocks count.
		want := float64((prompt + 100 - 1) / 16 * 16)
		if cached := dig(t, got, "usage", "prompt_tokens_details", "cached_tokens"); cached != want {
			t.Errorf("%v tokens cached, want %v of %d + 100", cached, want, prompt)
		}
	})
}

func TestSaltAndModelSeparateCaches(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{Models: []string{"other"}})
		body := chatBody(user(words(100, 1)))
		ask(t, s, "/v1/chat/completions", body)
		for _, c := range []struct {
			change m
			cached float64
		}{{m{}, 96}, {m{"cache_salt": "a"}, 0}, {m{"cache_salt": "a"}, 96}, {m{"model": "other"}, 0}} {
			b := maps.Clone(body)
			maps.Copy(b, c.change)
			got := dig(t, object(t, ask(t, s, "/v1/chat/completions", b)), "usage", "prompt_tokens_details", "cached_tokens")
			if got != c.cached {
				t.Errorf("%v: %v cached, want %v", c.change, got, c.cached)
			}
		}
	})
}

// shapes lists the members of each data event, in their order, nested ones included, without the values of text.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k, x := range v {
			if k == "content" || k == "text" || k == "usage" || k == "token_ids" || k == "prompt_token_ids" {
				x = nil
			}
			keys = append(keys, k+shape(x))
		}
		return "{" + strings.Join(sorted(keys), " ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = shape(x)
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return ""
}

func captured(t *testing.T, name string) []sse {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var data []string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "data: ") {
			data = append(data, strings.TrimSuffix(line, "\r"))
		}
	}
	return events(t, strings.Join(data, "\n\n"))
}

// A stream has the events of a real one: first, some in the middle, the last with content, usage, end.
func TestStreamsLookLikeCapturedOnes(t *testing.T) {
	for _, c := range []struct {
		file, path string
		body       m
	}{
		{"07_stream_chat_raw.txt", "/v1/chat/completions", chatBody(user("hello"))},
		{"07_stream_chat_continuous_usage_raw.txt", "/v1/chat/completions", chatBody(user("hello"))},
		{"07_stream_completion_raw.txt", "/v1/completions", m{"prompt": "hello"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				s := started(t, ServerConfig{})
				c.body["stream"], c.body["max_tokens"] = true, 5
				c.body["stream_options"] = m{"include_usage": true, "continuous_usage_stats": strings.Contains(c.file, "continuous")}
				w := ask(t, s, c.path, c.body)
				if got := w.Header().Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
					t.Errorf("content type %q", got)
				}
				got, want := events(t, w.Body.String()), captured(t, c.file)
				compareEnds(t, got, want)
			})
		})
	}
}

func compareEnds(t *testing.T, got, want []sse) {
	t.Helper()
	if len(got) < 4 || got[len(got)-1].data != "[DONE]" {
		t.Fatalf("events %q", got)
	}
	pairs := [][2]int{{0, 0}, {1, 1}, {len(got) - 3, len(want) - 3}, {len(got) - 2, len(want) - 2}}
	for _, p := range pairs {
		a, b := shape(parse(t, []byte(got[p[0]].data))), shape(parse(t, []byte(want[p[1]].data)))
		if a != b {
			t.Errorf("event %d is\n%s, captured\n%s", p[0], a, b)
		}
	}
}

func TestStreamedAndWholeAnswersAreTheSame(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		body := chatBody(user("tell me"))
		body["max_tokens"] = 40
		whole := dig(t, object(t, ask(t, s, "/v1/chat/completions", body)), "choices", 0, "message", "content")
		body["stream"] = true
		text, finish := "", any(nil)
		list := events(t, ask(t, s, "/v1/chat/completions", body).Body.String())
		for _, ev := range list[:len(list)-1] {
			choice := dig(t, parse(t, []byte(ev.data)), "choices", 0)
			if part, ok := dig(t, choice, "delta", "content").(string); ok {
				text += part
			}
			finish = dig(t, choice, "finish_reason")
		}
		if text != whole || finish != "length" {
			t.Errorf("streamed %q (%v), whole %q", text, finish, whole)
		}
	})
}

func TestHeadersAtOnceOrWithTheFirstToken(t *testing.T) {
	for _, late := range []bool{false, true} {
		virtualtime.Test(t, func(t *testing.T) {
			s := started(t, ServerConfig{HeadersWithFirstToken: late})
			body := chatBody(user(words(10_000, 1)))
			body["stream"] = true
			w := ask(t, s, "/v1/chat/completions", body)
			p := Profile8B
			ttft := p.Overhead + 10_010*p.PerPromptToken + p.PrefillStep
			if w.data < ttft || w.data > 2*ttft {
				t.Errorf("first data after %v, want a little more than %v", w.data, ttft)
			}
			if want := map[bool]time.Duration{false: 0, true: w.data}[late]; w.headers != want {
				t.Errorf("late %v: headers after %v, want %v", late, w.headers, want)
			}
		})
	}
}

func TestSpeedupDividesTime(t *testing.T) {
	took := map[float64]time.Duration{}
	for _, speedup := range []float64{1, 50} {
		virtualtime.Test(t, func(t *testing.T) {
			s := started(t, ServerConfig{Speedup: speedup})
			body := chatBody(user(words(5000, 1)))
			body["max_tokens"] = 200
			begin := time.Now()
			object(t, ask(t, s, "/v1/chat/completions", body))
			took[speedup] = time.Since(begin)
		})
	}
	if ratio := float64(took[1]) / float64(took[50]); ratio < 40 || ratio > 51 {
		t.Errorf("took %v, a ratio of %.1f, want about 50", took, ratio)
	}
}

func TestAClientThatLeavesIsCancelledAtOnce(t *testing.T) {
	for name, body := range map[string]m{
		"in prefill": {"messages": []m{user(words(50_000, 1))}, "stream": true},
		"in decode":  {"messages": []m{user("hi")}, "max_tokens": 5000, "stream": true},
		"unstreamed": {"messages": []m{user("hi")}, "max_tokens": 5000},
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				s := started(t, ServerConfig{})
				ctx, leave := context.WithCancel(t.Context())
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(string(jsonOf(t, body))))
					s.ServeHTTP(newTimed(), r.WithContext(ctx))
				}()
				time.Sleep(300 * time.Millisecond)
				if s.Live() != 1 {
					t.Fatalf("%d requests live, want 1", s.Live())
				}
				leave()
				<-gone
				if s.Live() != 0 || s.Cancelled() != 1 {
					t.Errorf("%d live, %d cancelled, want 0 and 1", s.Live(), s.Cancelled())
				}
				time.Sleep(time.Second) // a step may be running
				s.Inspect(func(e *Engine) { checkIdle(t, e) })
			})
		})
	}
}

func TestToolsAreCalledOnDemand(t *testing.T) {
	tools := []m{
		{"type": "function", "function": m{"name": "first", "parameters": m{"required": []string{"n"}, "properties": m{"n": m{"type": "integer"}}}}},
		{"type": "function", "function": m{"name": "second"}},
	}
	for _, c := range []struct {
		choice any
		want   any
	}{{"auto", nil}, {"required", "first"}, {m{"type": "function", "function": m{"name": "second"}}, "second"}} {
		virtualtime.Test(t, func(t *testing.T) {
			s := started(t, ServerConfig{})
			body := chatBody(user("hi"))
			body["tools"], body["tool_choice"] = tools, c.choice
			got := object(t, ask(t, s, "/v1/chat/completions", body))
			choice := dig(t, got, "choices", 0)
			if c.want == nil {
				if dig(t, choice, "message", "tool_calls") != nil {
					t.Errorf("a tool was called: %v", choice)
				}
				return
			}
			if name := dig(t, choice, "message", "tool_calls", 0, "function", "name"); name != c.want || dig(t, choice, "finish_reason") != "tool_calls" {
				t.Errorf("choice %v, want a call of %v", choice, c.want)
			}
			body["stream"] = true
			if text := ask(t, s, "/v1/chat/completions", body).Body.String(); !strings.Contains(text, `"delta":{"tool_calls":[{"index":0,"id":"call_`) {
				t.Errorf("stream without a call: %s", text)
			}
		})
	}
}

func TestEachChoiceIsAnswered(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		body := chatBody(user("hi"))
		body["n"], body["max_tokens"] = 3, 7
		got := object(t, ask(t, s, "/v1/chat/completions", body))
		if n := len(dig(t, got, "choices").([]any)); n != 3 || dig(t, got, "usage", "completion_tokens") != 21.0 {
			t.Errorf("%d choices, usage %v", n, got["usage"])
		}
	})
}

func TestTokensAreFlushedOneByOneUnlessTheyFallDueTogether(t *testing.T) {
	for speedup, most := range map[float64]int{1: 202, 100: 50} {
		virtualtime.Test(t, func(t *testing.T) {
			s := started(t, ServerConfig{Speedup: speedup})
			body := chatBody(user("hi"))
			body["stream"], body["max_tokens"] = true, 200
			w := ask(t, s, "/v1/chat/completions", body)
			// Headers, 200 tokens of which the first has the greeting with it, and the end.
			if w.flushes > most || speedup == 1 && w.flushes != most {
				t.Errorf("speedup %v: %d flushes, want %d", speedup, w.flushes, most)
			}
		})
	}
}
