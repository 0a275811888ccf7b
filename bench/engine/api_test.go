package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"kvca/state/virtualtime"
)

func TestAWholeChatLooksLikeACapturedOne(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{Model: "tiny-qwen3"})
		golden := load(t, "07_nonstream_chat.json")
		got, want := object(t, ask(t, s, golden.Path, string(golden.Request))), parse(t, golden.Response.JSON)
		for key := range want {
			if _, ok := got[key]; !ok && key != "prompt_text" && key != "ec_transfer_params" && key != "metrics" {
				t.Errorf("member %q is missing", key)
			}
		}
		if a, b := shape(got["choices"]), shape(want["choices"]); a != b {
			t.Errorf("choices %s, captured %s", a, b)
		}
		if a, b := shape(m{"x": got["usage"]}), shape(m{"x": want["usage"]}); a != b {
			t.Errorf("usage %s, captured %s", a, b)
		}
	})
}

func TestModelsLookLikeCapturedOnes(t *testing.T) {
	s := NewServer(ServerConfig{Models: []string{"second"}})
	defer s.Close()
	got, want := parse(t, get(s, "/v1/models").Body.Bytes()), parse(t, load(t, "07_get_v1_models.json").Response.JSON)
	if a, b := shape(dig(t, got, "data", 1)), shape(dig(t, want, "data", 0)); a != b {
		t.Errorf("%s, captured %s", a, b)
	}
	if id := dig(t, got, "data", 1, "id"); id != "second" {
		t.Errorf("second model is %v", id)
	}
}

func TestPromptsComeInFourForms(t *testing.T) {
	for _, c := range []struct {
		prompt  any
		choices int
		tokens  float64
	}{
		{"sixteen letters!", 1, 4},
		{[]string{"sixteen letters!", "four"}, 2, 5},
		{[]int{1, 2, 3}, 1, 3},
		{[][]int{{1, 2, 3}, {4}}, 2, 4},
	} {
		virtualtime.Test(t, func(t *testing.T) {
			s := started(t, ServerConfig{})
			got := object(t, ask(t, s, "/v1/completions", m{"prompt": c.prompt, "max_tokens": 2}))
			if n := len(dig(t, got, "choices").([]any)); n != c.choices || dig(t, got, "usage", "prompt_tokens") != c.tokens {
				t.Errorf("%v: %d choices, usage %v", c.prompt, n, got["usage"])
			}
		})
	}
}

func TestACompletionContinuedHitsItsAnswer(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		prompt := words(39, 1) + "ab" // ends within a token
		got := object(t, ask(t, s, "/v1/completions", m{"prompt": prompt, "max_tokens": 40}))
		next := prompt + dig(t, got, "choices", 0, "text").(string) + words(10, 2)
		got = object(t, ask(t, s, "/v1/completions", m{"prompt": next}))
		if cached := dig(t, got, "usage", "prompt_tokens_details", "cached_tokens"); cached != 64.0 {
			t.Errorf("%v tokens cached of 79, want 64", cached)
		}
	})
}

func TestResponsesContinueByID(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		first := object(t, ask(t, s, "/v1/responses", m{"input": words(40, 1), "max_output_tokens": 40}))
		if dig(t, first, "output", 0, "content", 0, "type") != "output_text" || first["status"] != "incomplete" {
			t.Errorf("response %v", first)
		}
		next := object(t, ask(t, s, "/v1/responses", m{"input": "and?", "previous_response_id": first["id"]}))
		if cached := dig(t, next, "usage", "input_tokens_details", "cached_tokens").(float64); cached < 64 {
			t.Errorf("%v tokens cached, want those of question and answer", cached)
		}
		stored := get(s, "/v1/responses/"+first["id"].(string))
		if parse(t, stored.Body.Bytes())["id"] != first["id"] {
			t.Errorf("stored response: %s", stored.Body)
		}
		gone := object(t, ask(t, s, "/v1/responses", m{"input": "x", "store": false}))
		if w := get(s, "/v1/responses/"+gone["id"].(string)); w.Code != 404 {
			t.Errorf("status %d of a response that was not to be stored", w.Code)
		}
	})
}

func TestStoredResponsesAreBounded(t *testing.T) {
	st := newResponseStore()
	big := strings.Repeat("x", maxStoredBytes/10)
	for i := range 100 {
		st.put(words(3, uint64(i)), stored{turns: []message{{Content: big}}})
	}
	if len(st.byID) > 10 || len(st.order) != len(st.byID) || st.bytes > maxStoredBytes {
		t.Errorf("%d stored, %d bytes", len(st.byID), st.bytes)
	}
	for i := range 2 * maxStored {
		st.put(words(4, uint64(i)), stored{})
	}
	if len(st.byID) != maxStored {
		t.Errorf("%d stored, want %d", len(st.byID), maxStored)
	}
}

// names lists the names of a stream's events, repetitions left out.
func names(list []sse) string {
	var out []string
	for _, ev := range list {
		if len(out) == 0 || out[len(out)-1] != ev.name {
			out = append(out, ev.name)
		}
	}
	return strings.Join(out, " ")
}

func TestResponsesStream(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		list := events(t, ask(t, s, "/v1/responses", m{"input": words(20, 1), "stream": true}).Body.String())
		want := "response.created response.in_progress response.output_item.added response.content_part.added " +
			"response.output_text.delta response.output_text.done response.content_part.done response.output_item.done response.completed"
		if got := names(list); got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		text := ""
		for i, ev := range list {
			v := parse(t, []byte(ev.data))
			if v["type"] != ev.name || v["sequence_number"] != float64(i) {
				t.Errorf("event %d %s: %s", i, ev.name, ev.data)
			}
			if part, ok := v["delta"].(string); ok {
				text += part
			}
		}
		final := parse(t, []byte(list[len(list)-1].data))
		if dig(t, final, "response", "output", 0, "content", 0, "text") != text {
			t.Errorf("streamed %q, final %v", text, final)
		}
	})
}

func TestMessagesStream(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		body := m{"messages": []m{user(words(40, 1))}, "max_tokens": 30, "stream": true}
		ask(t, s, "/v1/messages", body)
		list := events(t, ask(t, s, "/v1/messages", body).Body.String())
		want := "message_start content_block_start content_block_delta content_block_stop message_delta message_stop"
		if got := names(list); got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		begin, end := parse(t, []byte(list[0].data)), parse(t, []byte(list[len(list)-2].data))
		if dig(t, begin, "message", "usage", "cache_read_input_tokens") != 48.0 || dig(t, end, "usage", "output_tokens") != 30.0 {
			t.Errorf("usage in %v and %v", begin, end)
		}
		if dig(t, end, "delta", "stop_reason") != "max_tokens" {
			t.Errorf("stop reason in %v", end)
		}
	})
}

func TestMessagesRenderToolsAndResults(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		body := m{
			"max_tokens": 30, "system": []m{{"type": "text", "text": words(40, 2)}}, "messages": []any{user(words(20, 1))},
			"tools":       []m{{"name": "look", "input_schema": m{"required": []string{"what"}, "properties": m{"what": m{"type": "string"}}}}},
			"tool_choice": m{"type": "any"},
		}
		got := object(t, ask(t, s, "/v1/messages", body))
		if dig(t, got, "content", 0, "type") != "tool_use" || dig(t, got, "stop_reason") != "tool_use" {
			t.Fatalf("message %v", got)
		}
		body["messages"] = append(body["messages"].([]any), m{"role": "assistant", "content": got["content"]},
			m{"role": "user", "content": []m{{"type": "tool_result", "tool_use_id": "x", "content": "found"}}})
		delete(body, "tool_choice")
		next := object(t, ask(t, s, "/v1/messages", body))
		before := dig(t, got, "usage", "input_tokens").(float64)
		if read := dig(t, next, "usage", "cache_read_input_tokens").(float64); read < before-16 {
			t.Errorf("%v tokens read from the cache, want nearly the %v of the first request", read, before)
		}
		count := object(t, ask(t, s, "/v1/messages/count_tokens", body))
		if sum := dig(t, next, "usage", "input_tokens").(float64) + dig(t, next, "usage", "cache_read_input_tokens").(float64); count["input_tokens"] != sum {
			t.Errorf("counted %v, used %v", count["input_tokens"], sum)
		}
	})
}

func TestAnthropicErrorsHaveTheirOwnShape(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		w := ask(t, s, "/v1/messages", m{"model": "nope", "messages": []m{}, "max_tokens": 1})
		if got := parse(t, w.Body.Bytes()); w.Code != 404 || got["type"] != "error" || dig(t, got, "error", "type") != "not_found_error" {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}

func TestTokenizeIsWhatTheEngineCounts(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		body := chatBody(user("some text, then more"))
		used := dig(t, object(t, ask(t, s, "/v1/chat/completions", body)), "usage", "prompt_tokens")
		got := object(t, ask(t, s, "/tokenize", body))
		if got["count"] != used || float64(len(got["tokens"].([]any))) != used {
			t.Errorf("tokenize %v, usage %v", got, used)
		}
		got = object(t, ask(t, s, "/tokenize", m{"prompt": "Grüße 你好!"}))
		if back := object(t, ask(t, s, "/detokenize", m{"tokens": got["tokens"]})); back["prompt"] != "Grüße 你好!" {
			t.Errorf("came back as %q", back["prompt"])
		}
	})
}

func TestEmbeddingsSkipTheCache(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		body := m{"input": []string{words(100, 1), "b"}, "dimensions": 8}
		first := object(t, ask(t, s, "/v1/embeddings", body))
		second := object(t, ask(t, s, "/v1/embeddings", body))
		if a, b := string(jsonOf(t, first["data"])), string(jsonOf(t, second["data"])); a != b {
			t.Errorf("%s and then %s", a, b)
		}
		if n := len(dig(t, first, "data", 1, "embedding").([]any)); n != 8 {
			t.Errorf("%d dimensions, want 8", n)
		}
		body["encoding_format"] = "base64"
		if _, ok := dig(t, object(t, ask(t, s, "/v1/embeddings", body)), "data", 0, "embedding").(string); !ok {
			t.Error("no base64")
		}
		s.Inspect(func(e *Engine) {
			if e.CachedBlocks() != 0 {
				t.Errorf("%d blocks cached", e.CachedBlocks())
			}
		})
	})
}

func TestRerankAndScore(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		got := object(t, ask(t, s, "/v1/rerank", m{"query": "q", "documents": []string{"a", "b", "c"}, "top_n": 2}))
		results := got["results"].([]any)
		if len(results) != 2 || dig(t, results, 0, "relevance_score").(float64) < dig(t, results, 1, "relevance_score").(float64) {
			t.Errorf("results %v", results)
		}
		got = object(t, ask(t, s, "/v1/score", m{"text_1": "q", "text_2": []string{"a", "b"}}))
		if len(got["data"].([]any)) != 2 {
			t.Errorf("data %v", got["data"])
		}
	})
}

func TestMetricsParseAndCount(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		body := chatBody(user(words(100, 1)))
		body["max_tokens"] = 10
		ask(t, s, "/v1/chat/completions", body)
		ask(t, s, "/v1/chat/completions", body)
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(get(s, "/metrics").Body.String()))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{
			"vllm:num_requests_running": 0, "vllm:num_requests_waiting": 0, "vllm:kv_cache_usage_perc": 0,
			"vllm:prefix_cache_queries_total": 2 * 109, "vllm:prefix_cache_hits_total": 96, "vllm:prompt_tokens_total": 2 * 109,
			"vllm:generation_tokens_total": 20,
		}
		for name, value := range want {
			f := families[name]
			if f == nil {
				t.Errorf("no metric %s", name)
				continue
			}
			sample := f.GetMetric()[0]
			if got := sample.GetGauge().GetValue() + sample.GetCounter().GetValue(); got != value {
				t.Errorf("%s is %v, want %v", name, got, value)
			}
		}
		labels := map[string]string{}
		for _, l := range families["vllm:cache_config_info"].GetMetric()[0].GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["block_size"] != "16" || labels["num_gpu_blocks"] != "25000" {
			t.Errorf("cache configuration %v", labels)
		}
	})
}

func TestHooks(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := started(t, ServerConfig{})
		body := chatBody(user(words(100, 1)))
		object(t, ask(t, s, "/v1/chat/completions", body))
		object(t, ask(t, s, "/sim/clear", m{}))
		got := object(t, ask(t, s, "/v1/chat/completions", body))
		if cached := dig(t, got, "usage", "prompt_tokens_details", "cached_tokens"); cached != 0.0 {
			t.Errorf("%v tokens cached after the cache was dropped", cached)
		}
		object(t, ask(t, s, "/sim/model", m{"add": []string{"lora"}, "remove": []string{"sim"}}))
		if w := ask(t, s, "/v1/chat/completions", body); w.Code != 404 {
			t.Errorf("status %d for a model that is gone", w.Code)
		}
		object(t, ask(t, s, "/sim/health", m{"healthy": false}))
		if w := get(s, "/health"); w.Code != 503 {
			t.Errorf("health %d", w.Code)
		}
		var st State
		if err := json.Unmarshal(get(s, "/sim/state").Body.Bytes(), &st); err != nil || st.Finished != 2 {
			t.Errorf("state %+v, %v", st, err)
		}
	})
}
