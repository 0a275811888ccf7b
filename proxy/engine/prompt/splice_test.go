package prompt

import (
	"bytes"
	"encoding/json"
	"testing"

	"kvca/state/cbr"
)

func TestSplicedBodyKeepsTheClientsSpelling(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint  cbr.Endpoint
		from, out string
	}{
		"order and space": {
			cbr.Chat,
			`{ "stream":true, "tools" : [ {"z":1, "a":{"y":2,"b":1.50}} ],"temperature":0.1,"messages":[{"role":"user", "content":"\u00e9\/"}] ,"model":"m" }`,
			`{"tools":[ {"z":1, "a":{"y":2,"b":1.50}} ],"messages":[{"role":"user", "content":"\u00e9\/"}],"model":"m","add_special_tokens":false}`,
		},
		"own arguments": {
			cbr.Chat,
			`{"messages":[1],"chat_template_kwargs":{"z": 1,"enable_thinking":false},"add_generation_prompt":false,"continue_final_message":true,"add_special_tokens":true}`,
			`{"messages":[1],"add_generation_prompt":false,"continue_final_message":true,"add_special_tokens":true,"chat_template_kwargs":{"z": 1,"enable_thinking":false}}`,
		},
		"effort and documents": {
			cbr.Chat,
			`{"documents":[{"b":1,"a":2}],"messages":[1],"reasoning_effort":"low","chat_template_kwargs":{"q\"":[1, 2],"reasoning_effort":"high"}}`,
			`{"messages":[1],"reasoning_effort":"low","chat_template_kwargs":{"q\"":[1, 2],"reasoning_effort":"low","documents":[{"b":1,"a":2}],"enable_thinking":true},"add_special_tokens":false}`,
		},
		"effort of none": {
			cbr.Chat, `{"messages":[1],"reasoning_effort":"none"}`,
			`{"messages":[1],"reasoning_effort":"none","chat_template_kwargs":{"reasoning_effort":"none","enable_thinking":false},"add_special_tokens":false}`,
		},
		"effort, thinking by the client": {
			cbr.Chat, `{"messages":[1],"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true}}`,
			`{"messages":[1],"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true,"reasoning_effort":"none"},"add_special_tokens":false}`,
		},
		"nulls": {
			cbr.Chat, `{"messages":[1],"tools":null,"reasoning_effort":null,"documents":null,"chat_template_kwargs":null}`,
			`{"messages":[1],"add_special_tokens":false}`,
		},
		"a member twice, and escaped": {
			cbr.Chat, `{"messages":[1],"model":"a","m\u0065ssages":[2]}`, `{"messages":[2],"model":"a","add_special_tokens":false}`,
		},
		"completion": {
			cbr.Completions, `{"max_tokens":1,"prompt":"a\u0062","model":"m","add_special_tokens":false}`, `{"model":"m","prompt":"a\u0062","add_special_tokens":false}`,
		},
		"the first of several": {cbr.Completions, `{"prompt":[ "x" ,"y"],"model":"m"}`, `{"model":"m","prompt":"x"}`},
	} {
		got, err := tokenizeBody(c.endpoint, []byte(c.from))
		if err != nil || string(got) != c.out {
			t.Errorf("%s: got\n%s (%v), want\n%s", name, got, err, c.out)
		}
	}
}

func FuzzTokenizeBody(f *testing.F) {
	f.Add([]byte(hi), []byte(`{"a":1}`))
	f.Add([]byte(`{"messages":[{"content":[{"type":"image_url"}]}],"reasoning_effort":"low","chat_template_kwargs":{"\ud800":1}}`), []byte(`[]`))
	f.Add([]byte(`{"prompt":["a","b"],"model":"m","documents":[]}`), []byte("\"\\u0000\""))
	f.Fuzz(func(t *testing.T, body, value []byte) {
		_ = inspect(cbr.Chat, body)
		_, _ = givenIDs(body)
		for _, endpoint := range []cbr.Endpoint{cbr.Chat, cbr.Completions} {
			if out, err := tokenizeBody(endpoint, body); err == nil && !json.Valid(out) && json.Valid(body) {
				t.Fatalf("%q became %q", body, out)
			}
		}
		if !json.Valid(value) || string(value) == "null" {
			return
		}
		value = bytes.TrimSpace(value)
		whole := append([]byte(`{"seed":1,"messages":`), value...)
		out, err := tokenizeBody(cbr.Chat, append(whole, '}'))
		if err == nil && !bytes.HasPrefix(out, append([]byte(`{"messages":`), value...)) {
			t.Fatalf("%q became %q", value, out)
		}
	})
}

// BenchmarkTokenizeBody splices a request of 400 KB.
func BenchmarkTokenizeBody(b *testing.B) {
	var body bytes.Buffer
	body.WriteString(`{"model":"m","messages":[`)
	for i := range 100 {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteString(`{"role":"user","content":"`)
		body.Write(bytes.Repeat([]byte("All work and no play. "), 180))
		body.WriteString(`"}`)
	}
	body.WriteString(`]}`)
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokenizeBody(cbr.Chat, body.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
