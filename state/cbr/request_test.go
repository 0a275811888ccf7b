package cbr

import (
	"errors"
	"io"
	"testing"
)

func TestEndpointsByPath(t *testing.T) {
	for path, want := range map[string]Endpoint{
		"/v1/chat/completions": Chat, "/v1/completions": Completions, "/v1/responses": Responses, "/v1/messages": Messages,
		"/api/chat": OllamaChat, "/api/generate": OllamaGenerate, "/generate": Generate, "/completion": Complete,
		"/tokenize": Other, "/v1/embeddings": Other, "/v1/rerank": Other, "/v1/score": Other, "": Other, "other": Other, "/v1/chat/completions/": Other,
	} {
		if got := EndpointOf(path); got != want {
			t.Errorf("EndpointOf(%q) = %v, want %v", path, got, want)
		} else if want != Other && got.String() != path {
			t.Errorf("String() = %q, want %q", got, path)
		}
	}
	if got := Endpoint(200).String(); got != Other.String() {
		t.Errorf("an unknown endpoint is called %q", got)
	}
}

func TestPhase(t *testing.T) {
	input := func(items string) string { return `{"model":"m","input":[` + items + `]}` }
	for _, c := range []struct {
		ep   Endpoint
		body string
		want Phase
	}{
		{Chat, withMessages(``), Bootstrap},
		{Chat, `{"model":"m"}`, Bootstrap},
		{Chat, withMessages(`{"role":"system"},{"role":"developer"},{"role":"user"}`), Bootstrap},
		{Chat, withMessages(`{"role":"user"},{"role":"assistant"}`), FollowUp},
		{Chat, withMessages(`{"role":"tool"}`), FollowUp},
		{Chat, withMessages(`{"role":"function"},{"role":"user"}`), FollowUp},
		{Chat, withMessages(`{"role":"assistant","role":"user"}`), Bootstrap},
		{Chat, withMessages(`{"role":"user","role":"\u0061ssistant"}`), FollowUp},
		{Chat, withMessages(`{"role":"Assistant"},{"role":1},"assistant",{"x":{"role":"assistant"}}`), Bootstrap},
		{Chat, withMessages(`{"role":"user","content":[{"type":"tool_result"}]}`), Bootstrap},
		{Chat, `{"model":"m","messages":[{"role":"assistant"}],"messages":[]}`, Bootstrap},
		{Chat, `{"model":"m","messages":[{"role":"assistant"}],"messages":null}`, Bootstrap},
		{Chat, `{"model":"m","messages":[{"role":"assistant"}],"messages":"x"}`, Bootstrap},
		{Chat, `{"model":"m","messages":[],"input":[{"role":"assistant"}],"tools":[{"role":"assistant"}]}`, Bootstrap},
		{Chat, `{"model":"m","messages":[],"previous_response_id":"x"}`, Bootstrap},
		{Messages, withMessages(`{"role":"user","content":"x"}`), Bootstrap},
		{Messages, withMessages(`{"role":"assistant","content":"x"}`), FollowUp},
		{Messages, withMessages(`{"role":"user","content":[{"type":"text"},{"type":"tool_result","content":"x"}]}`), FollowUp},
		{Messages, withMessages(`{"role":"user","content":[{"type":"tool_result"}],"content":"x"}`), Bootstrap},
		{Messages, `{"model":"m","system":[{"type":"tool_result"}],"messages":[{"role":"user"}]}`, Bootstrap},
		{Completions, `{"model":"m","prompt":"x"}`, FollowUp},
		{Completions, `{"model":"m"}`, FollowUp},
		{OllamaGenerate, `{"model":"m","prompt":"x"}`, FollowUp},
		{Generate, `{"model":"m","inputs":"x"}`, FollowUp},
		{Complete, `{"model":"m","prompt":"x"}`, FollowUp},
		{OllamaChat, withMessages(`{"role":"user","content":"x"}`), Bootstrap},
		{OllamaChat, withMessages(`{"role":"assistant","content":"x"}`), FollowUp},
		{Responses, `{"model":"m","input":"x"}`, Bootstrap},
		{Responses, input(`{"role":"user"},{"type":"message","role":"system"}`), Bootstrap},
		{Responses, input(`{"role":"assistant"}`), FollowUp},
		{Responses, input(`{"type":"function_call_output"}`), FollowUp},
		{Responses, input(`{"type":"function_call"}`), FollowUp},
		{Responses, input(`{"type":"reasoning"}`), FollowUp},
		{Responses, input(`{"type":"mcp_call"}`), FollowUp},
		{Responses, input(`{"type":"computer_call_output"}`), FollowUp},
		{Responses, `{"model":"m","input":"x","previous_response_id":"r"}`, FollowUp},
		{Responses, `{"model":"m","input":"x","previous_response_id":""}`, Bootstrap},
		{Responses, `{"model":"m","input":"x","previous_response_id":null}`, Bootstrap},
		{Other, withMessages(`{"role":"assistant"}`), Bootstrap},
	} {
		if _, req := encoded(t, c.ep, c.body, nil); req.Phase != c.want {
			t.Errorf("%s %s: %s, want %s", c.ep, c.body, req.Phase, c.want)
		}
	}
}

func TestRequestTellsWhatTheBodyAsksFor(t *testing.T) {
	type asked struct{ stream, usage, skips bool }
	for members, want := range map[string]asked{
		``:                {},
		`,"stream":true`:  {stream: true},
		`,"stream":false`: {},
		`,"stream":null`:  {},
		`,"stream":"x"`:   {},
		`,"stream":true,"stream_options":{"x":{"include_usage":false},"include_usage":true}`: {stream: true, usage: true},
		`,"stream_options":{"include_usage":false}`:                                          {},
		`,"stream_options":{"x":{"include_usage":true}}`:                                     {},
		`,"stream_options":{"include_usage":true,"include_usage":false}`:                     {},
		`,"stream_options":[]`:              {},
		`,"stream_options":{}`:              {},
		`,"prompt_logprobs":0`:              {skips: true},
		`,"prompt_logprobs":5`:              {skips: true},
		`,"prompt_logprobs":null`:           {},
		`,"prompt_logprobs":false`:          {},
		`,"echo":true`:                      {},
		`,"echo":true,"logprobs":1`:         {skips: true},
		`,"logprobs":true,"echo":true`:      {skips: true},
		`,"top_logprobs":2,"echo":true`:     {skips: true},
		`,"logprobs":1,"echo":false`:        {},
		`,"logprobs":false,"echo":true`:     {},
		`,"echo":true,"logprobs":null`:      {},
		`,"logprobs":true,"top_logprobs":1`: {},
	} {
		for _, ep := range append([]Endpoint{Other}, everyEndpoint...) {
			_, req := encoded(t, ep, chatWith(members), nil)
			if got := (asked{req.Stream, req.IncludeUsage, req.SkipsCache}); got != want {
				t.Errorf("%s %s: %+v, want %+v", ep, members, got, want)
			}
		}
	}
}

func TestPreviousResponseIsNamed(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","previous_response_id":"resp_\u0031"}`:                   "resp_1",
		`{"model":"m","previous_response_id":7}`:                               "",
		`{"model":"m","previous_response_id":"a","previous_response_id":"b"}`:  "b",
		`{"model":"m","previous_response_id":"a","previous_response_id":null}`: "",
		`{"model":"m","metadata":{"previous_response_id":"a"}}`:                "",
	} {
		if _, req := encoded(t, Responses, body, nil); req.PreviousResponseID != want {
			t.Errorf("%s: %q, want %q", body, req.PreviousResponseID, want)
		}
	}
}

// Engines' own endpoints may leave the model out; whoever resolves it says which it is.
func TestAnEnginesOwnEndpointMayNameNoModel(t *testing.T) {
	only := func(name string) (string, *Rules, error) { return "only" + name, nil, nil }
	for ep, body := range map[Endpoint]string{
		OllamaChat: `{"messages":[]}`, OllamaGenerate: `{"prompt":"x","model":null}`, Generate: `{"inputs":"x"}`, Complete: `{"prompt":[1,2],"model":""}`,
	} {
		req, err := New().Encode(ep, []byte(body), only, io.Discard)
		if err != nil || req.Model != "only" || req.ClientModel != "" {
			t.Errorf("%s: %+v, %v", ep, req, err)
		}
	}
	for _, ep := range []Endpoint{Other, Chat, Completions, Responses, Messages} {
		if _, err := New().Encode(ep, []byte(`{"prompt":"x"}`), only, io.Discard); err == nil {
			t.Errorf("%s takes a body without a model", ep)
		}
	}
}

func TestModelIsResolvedAndItsPlaceKept(t *testing.T) {
	const body = `{"model":"x","model" : "ali\u0061s","messages":[]}`
	rules, err := Compile(Options{Out: []string{"y"}})
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	resolve := func(model string) (string, *Rules, error) { asked = model; return "real", rules, nil }
	var h countingWriter
	req, err := New().Encode(Chat, []byte(body), resolve, &h)
	if err != nil {
		t.Fatal(err)
	}
	if asked != "alias" || req.ClientModel != "alias" || req.Model != "real" {
		t.Errorf("asked for %q, request %+v", asked, req)
	}
	if got := body[req.ModelSpan[0]:req.ModelSpan[1]]; got != `"ali\u0061s"` {
		t.Errorf("the span holds %s", got)
	}
	if want := cbrOf(t, Chat, `{"model":"real","messages":[]}`); req.Bytes != int64(len(want)) {
		t.Errorf("%d bytes, want those of the real model: %d", req.Bytes, len(want))
	}
}

func TestAliasesOfAModelShareAChain(t *testing.T) {
	var out writerOf
	resolve := func(string) (string, *Rules, error) { return "real", nil, nil }
	if _, err := New().Encode(Chat, []byte(`{"model":"alias","messages":[]}`), resolve, &out); err != nil {
		t.Fatal(err)
	}
	if want := cbrOf(t, Chat, `{"model":"real","messages":[]}`); string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestResolveErrorComesBackAsItIs(t *testing.T) {
	unknown := errors.New("unknown model")
	req, err := New().Encode(Chat, []byte(`{"model":"nope","messages":7}`), func(string) (string, *Rules, error) { return "", nil, unknown }, io.Discard)
	if err != unknown || req.ClientModel != "nope" {
		t.Errorf("got %v of %+v", err, req)
	}
}

func TestWriterErrorComesBackAsItIs(t *testing.T) {
	full := errors.New("full")
	for room := range 6 {
		if _, err := New().Encode(Chat, []byte(chatWith(`,"a":1,"b":2`)), nil, &failingWriter{room, full}); (err == full) != (room < 5) {
			t.Errorf("room for %d writes: %v", room, err)
		}
	}
}

func TestOtherEndpointsHaveNoCBR(t *testing.T) {
	got, req := encoded(t, Other, `{"model":"m","input":["a",{"b":1}],"stream":true}`, nil)
	if got != "" || req.Model != "m" || !req.Stream || req.Endpoint != Other {
		t.Errorf("%q was written for %+v", got, req)
	}
}

func TestEncoderForgetsTheRequestBefore(t *testing.T) {
	e := New()
	var first, again writerOf
	body := []byte(`{"model":"m","input":[{"role":"user","content":"a"}]}`)
	want, err := e.Encode(Responses, body, nil, &first)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{
		`{"model":"n","truncate_prompt_tokens":-1,"stream":true,"previous_response_id":"x","input":[{"role":"assistant","content":"a"}]}`,
		`{"model":"n","input":[[[[[`, `{"a":1,"a":{"b":`, ``, `{"input":[{"type":"reasoning"}]}`,
	} {
		_, _ = e.Encode(Responses, []byte(other), nil, io.Discard)
		again = again[:0]
		got, err := e.Encode(Responses, body, nil, &again)
		if err != nil || got != want || string(again) != string(first) {
			t.Errorf("after %s: %+v, %v, %q", other, got, err, again)
		}
	}
}

type writerOf []byte

func (w *writerOf) Write(p []byte) (int, error) { *w = append(*w, p...); return len(p), nil }

type countingWriter int64

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}

type failingWriter struct {
	room int
	err  error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.room == 0 {
		return 0, w.err
	}
	w.room--
	return len(p), nil
}
