package cbr

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// seeds are bodies of every kind, for the fuzzer to start from.
var seeds = []string{
	``, `{}`, `[]`, `{"model":"m"}`, `{"model":"m","messages":[]}`, "\ufeff{}",
	`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"x"}]}],"seed":1,"max_tokens":2.0,"truncate_prompt_tokens":-1}`,
	`{"model":"m","prompt":["a","b"],"echo":true,"logprobs":1}`, `{"model":"m","prompt":[1,2,3e0,-4.50]}`, `{"model":"m","prompt":[[1],[2]]}`,
	`{"model":"m","input":"hi","instructions":"be","previous_response_id":"r"}`,
	`{"model":"m","input":[{"type":"message","role":"assistant","content":"x"},{"type":"function_call_output","output":"x"}]}`,
	`{"model":"m","system":[{"type":"text","text":"s","cache_control":{}}],"messages":[{"role":"user","content":[{"type":"tool_result"}]}]}`,
	`{"a":1,"a":{"a":1,"b":2,"a":3},"model":"m","model":"n"}`, `{"model":"\ud800","x":"\ud83d\ude00\u0000\/"}`, `{"model":"m","x":1e999999999,"y":0.00}`,
	`{"model":"m","kv_transfer_params":{"prompt_token_ids":[1]},"stream":true,"stream_options":{"include_usage":true}}`,
	`{"x":` + strings.Repeat("[", 300), "{\"model\":\"\xff\"}", `{"model":"m"} x`,
}

func addSeeds(f *testing.F) {
	for _, body := range seeds {
		for ep := range byte(Messages + 1) {
			f.Add(ep, []byte(body))
		}
	}
}

// readable says by another parser whether a body is one that Encode has to read,
// and how deep it nests.
func readable(body []byte) (ok bool, depth int) {
	// Lone surrogates are taken, which that parser only does together with invalid
	// UTF-8.
	if !utf8.Valid(body) {
		return false, 0
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return false, 0
	}
	for {
		_, err := dec.ReadToken()
		if err != nil {
			return errors.Is(err, io.EOF), depth
		}
		depth = max(depth, dec.StackDepth())
		if dec.StackDepth() == 0 {
			_, err := dec.ReadToken()
			return errors.Is(err, io.EOF), depth
		}
	}
}

func FuzzEncodeTakesWhatAStrictParserTakes(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, ep byte, body []byte) {
		var out bytes.Buffer
		req, err := New().Encode(Endpoint(ep), body, nil, &out)
		ok, depth := readable(body)
		var fault *Error
		switch {
		case err == nil:
			if !ok || depth > MaxDepth {
				t.Fatalf("taken, though readable is %v and the depth %d: %q", ok, depth, body)
			}
		case !errors.As(err, &fault):
			t.Fatalf("%T is no *Error", err)
		case fault.Offset < 0 || fault.Offset > int64(len(body)):
			t.Fatalf("offset %d of %d", fault.Offset, len(body))
		case ok && fault.Code != CodeTooDeep && fault.Code != CodeMissingModel:
			t.Fatalf("refused: %v: %q", err, body)
		case fault.Code == CodeTooDeep && depth <= MaxDepth && ok:
			t.Fatalf("too deep at %d: %q", depth, body)
		}
		checkOutput(t, body, out.Bytes(), req)
	})
}

// checkOutput checks what has to hold of every CBR.
func checkOutput(t *testing.T, body, cbr []byte, req Request) {
	if int64(len(cbr)) != req.Bytes || len(cbr) > 2*len(body)+64 {
		t.Fatalf("%d bytes of CBR, said to be %d, from %d", len(cbr), req.Bytes, len(body))
	}
	if len(cbr) > 0 {
		if _, err := decode(cbr); err != nil {
			t.Fatalf("%v: %q", err, cbr)
		}
	}
	if span := body[req.ModelSpan[0]:req.ModelSpan[1]]; len(span) > 0 && req.ClientModel != "" {
		if span[0] != '"' || span[len(span)-1] != '"' || !json.Valid(span) && utf8.Valid(span) {
			t.Fatalf("the model's span holds %q", span)
		}
	}
}

// An engine's view of a body is the one that the JSON package of the standard
// library gives; a body that is spelled anew from it must have the same CBR
// wherever nothing but white space and escapes has changed.
func FuzzRespelledBodyHasTheSameCBR(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, ep byte, body []byte) {
		var before, after bytes.Buffer
		if _, err := New().Encode(Endpoint(ep), body, nil, &before); err != nil {
			return
		}
		if _, err := New().Encode(Endpoint(ep), respelled(body), nil, &after); err != nil {
			t.Fatalf("%v: %q", err, respelled(body))
		}
		if !bytes.Equal(before.Bytes(), after.Bytes()) {
			t.Fatalf("differ:\n%q\n%q\n%q\n%q", body, respelled(body), before.Bytes(), after.Bytes())
		}
	})
}

// respelled puts white space around everything and escapes every letter.
func respelled(body []byte) []byte {
	var out bytes.Buffer
	for i, quoted := 0, false; i < len(body); i++ {
		c := body[i]
		switch {
		case c == '"':
			quoted = !quoted
			out.WriteByte(c)
		case quoted && c == '\\' && body[i+1] == 'u':
			out.Write(bytes.ToUpper(body[i+2 : i+6]))
			i += 5
			hex := out.Bytes()[out.Len()-4:]
			digits := string(hex)
			out.Truncate(out.Len() - 4)
			out.WriteString(`\u` + digits)
		case quoted && c == '\\':
			out.Write(body[i : i+2])
			i++
		case quoted && c < utf8.RuneSelf:
			out.WriteString(`\u00`)
			out.WriteByte("0123456789abcdef"[c>>4])
			out.WriteByte("0123456789abcdef"[c&15])
		case !quoted && strings.IndexByte("{}[]:,", c) >= 0:
			out.WriteString("\r\n")
			out.WriteByte(c)
			out.WriteString("\t ")
		default:
			out.WriteByte(c)
		}
	}
	return out.Bytes()
}
