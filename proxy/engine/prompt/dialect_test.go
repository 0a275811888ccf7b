package prompt

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"kvca/state/cbr"
)

// llamaCPP renders with its messages' bytes as the text of the prompt. Asked for
// nothing, its tokenizer finds nothing.
func llamaCPP() routes {
	return routes{
		"/apply-template": func(w http.ResponseWriter, _ *http.Request, body map[string]json.RawMessage) {
			reply(w, map[string]string{"prompt": string(body["messages"])})
		},
		"/tokenize": func(w http.ResponseWriter, _ *http.Request, body map[string]json.RawMessage) {
			var text string
			_ = json.Unmarshal(body["content"], &text)
			if string(body["add_special"]) != "true" || string(body["parse_special"]) != "true" {
				text = ""
			}
			reply(w, map[string]any{"tokens": append([]uint32{}, ids([]byte(text))...)})
		},
	}
}

func tgi() routes {
	objects := func(ids []uint32) []any {
		list := []any{}
		for _, id := range ids {
			list = append(list, map[string]any{"id": id, "text": "x", "start": 0, "stop": 1})
		}
		return list
	}
	return routes{
		"/chat_tokenize": func(w http.ResponseWriter, _ *http.Request, body map[string]json.RawMessage) {
			reply(w, map[string]any{"templated_text": "x", "tokenize_response": objects(ids(body["messages"]))})
		},
		"/tokenize": func(w http.ResponseWriter, _ *http.Request, body map[string]json.RawMessage) {
			if body["inputs"] == nil {
				http.Error(w, "missing field `inputs`", http.StatusUnprocessableEntity)
				return
			}
			reply(w, objects(ids(body["inputs"])))
		},
	}
}

func completion(key uint64, prompt string, engines ...Engine) *Request {
	body := `{"model":"m","prompt":` + prompt + `,"max_tokens":1}`
	return &Request{Endpoint: cbr.Completions, Body: []byte(body), Model: "m", Key: key, Bytes: int64(len(body)), Engines: engines}
}

func TestDialects(t *testing.T) {
	text, quoted := ids([]byte(`one`)), ids([]byte(`"one"`))
	for name, c := range map[string]struct {
		engine     http.Handler
		source     string
		completion []uint32
		chat       []string // the paths of a second question
	}{
		"vllm":     {vllm(), FromRender, quoted, []string{chatRender}},
		"sglang":   {tokenizerOnly(), FromTokenize, quoted, []string{"/tokenize"}},
		"llamacpp": {llamaCPP(), FromTokenize, text, []string{"/apply-template", "/tokenize"}},
		"tgi":      {tgi(), FromTokenize, quoted, []string{"/chat_tokenize"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &double{id: "a", handler: c.engine}
			s := newService(t, Config{})
			want(t, s, chat(1, e), c.source, hiIDs)
			before := len(e.questions())
			want(t, s, chat(2, e), c.source, hiIDs)
			if got := e.questions()[before:]; !slices.Equal(got, c.chat) {
				t.Errorf("the way once known, asked %v, want %v", got, c.chat)
			}
			want(t, s, completion(3, `["one","two"]`, e), c.source, wholePrompt(name, c.completion))
		})
	}
}

// wholePrompt is what a double makes of a list of prompts: vLLM's takes the request
// as it is, the others are told the first one.
func wholePrompt(name string, one []uint32) []uint32 {
	if name == "vllm" {
		return ids([]byte(`["one","two"]`))
	}
	return one
}

func TestRefusalByAProvenTokenizerIsTheRequestsFault(t *testing.T) {
	e := &double{id: "a", handler: tokenizerOnly()}
	s := newService(t, Config{})
	want(t, s, chat(1, e), FromTokenize, hiIDs)
	e.handler = always(http.StatusUnprocessableEntity, "no")
	wantFailure(t, s, chat(2, e), EngineError)
	e.handler = tokenizerOnly()
	want(t, s, chat(3, e), FromTokenize, hiIDs)
}
