package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"kvca/state/cbr"
)

// captured is a file of a real engine's request and answer.
type captured struct {
	Request  json.RawMessage `json:"request"`
	Response struct {
		JSON json.RawMessage `json:"json"`
	} `json:"response"`
	// Some files are the response by itself.
	JSON json.RawMessage `json:"json"`
}

func load(t testing.TB, name string) (request, answer json.RawMessage) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "vllm", "06_"+name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var c captured
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if c.JSON != nil {
		return c.Request, c.JSON
	}
	return c.Request, c.Response.JSON
}

func reader(text []byte) *answerReader { return newAnswerReader(bytes.NewReader(text), 1<<20) }

// actual are the ids that the engine says it computed.
func actual(t *testing.T, name string) []uint32 {
	t.Helper()
	_, answer := load(t, name)
	var v struct {
		IDs     []uint32 `json:"prompt_token_ids"`
		Choices []struct {
			IDs []uint32 `json:"prompt_token_ids"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Fatal(err)
	}
	if v.IDs == nil {
		v.IDs = v.Choices[0].IDs
	}
	if len(v.IDs) == 0 {
		t.Fatalf("%s has no ids", name)
	}
	return v.IDs
}

func TestRealAnswersHoldTheTokensThatWereComputed(t *testing.T) {
	for _, name := range []string{"plain", "system", "followup"} {
		want := actual(t, "chat_actual_"+name)
		_, answer := load(t, "chat_render_"+name)
		if f, err := reader(answer).rendered(); err != nil || !slices.Equal(f.tokens, want) || f.salt != "" || f.media != nil {
			t.Errorf("render %s: got %v, %v; want %v", name, f, err, want)
		}
		_, answer = load(t, "tokenize_"+name)
		if f, err := reader(answer).listed(); err != nil || !slices.Equal(f.tokens, want) {
			t.Errorf("tokenize %s: got %v, %v; want %v", name, f, err, want)
		}
	}
	want := actual(t, "completions_actual")
	for _, name := range []string{"completions_render", "completions_render_list"} {
		_, answer := load(t, name)
		if f, err := reader(answer).renderedFirst(); err != nil || !slices.Equal(f.tokens, want) {
			t.Errorf("%s: got %v, %v; want %v", name, f, err, want)
		}
	}
	_, answer := load(t, "completions_render_salt")
	if f, err := reader(answer).renderedFirst(); err != nil || f.salt != "abc" || !slices.Equal(f.tokens, []uint32{1, 2, 3}) {
		t.Errorf("salt: got %v, %v", f, err)
	}
}

func TestRealRequestsForTokensAreTheSame(t *testing.T) {
	for _, name := range []string{"plain", "system", "followup"} {
		chat, _ := load(t, "chat_actual_"+name)
		body, err := tokenizeBody(cbr.Chat, chat)
		if err != nil {
			t.Fatal(err)
		}
		var got, want map[string]any
		wanted, _ := load(t, "tokenize_"+name)
		if json.Unmarshal(body, &got) != nil || json.Unmarshal(wanted, &want) != nil {
			t.Fatalf("body is %s", body)
		}
		if got["add_special_tokens"] != false {
			t.Errorf("%s: special tokens are %v", name, got["add_special_tokens"])
		}
		delete(got, "add_special_tokens")
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestIDsThatAreNone(t *testing.T) {
	for _, text := range []string{
		``, `[`, `]`, `[1`, `[1,]`, `[,1]`, `[1 2]`, `[-1]`, `[1.0]`, `[1e3]`, `[01]`, `["1"]`, `[[1]]`, `[null]`, `[4294967296]`, `[99999999999]`, `{}`, `null`,
	} {
		if ids, err := parseIDs([]byte(text), 10); err == nil {
			t.Errorf("%q: got %v", text, ids)
		}
	}
	if _, err := parseIDs([]byte("[1,2,3]"), 2); err == nil || !strings.Contains(err.Error(), "more than 2") {
		t.Errorf("three ids of two: %v", err)
	}
}

func TestIDsReadAsOtherParsersDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Uint32()).Draw(t, "ids")
		text, _ := json.Marshal(want)
		if rapid.Bool().Draw(t, "indent") {
			var b bytes.Buffer
			_ = json.Indent(&b, text, " ", "\t")
			text = b.Bytes()
		}
		got, err := parseIDs(text, len(want))
		if err != nil || !slices.Equal(got, want) || cap(got) > len(got)+len(got)/8 {
			t.Fatalf("%s: got %v, %v", text, got, err)
		}
	})
}

func TestPlacesWithoutHashesAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"token_ids":[1],"features":{"mm_placeholders":{"image":[{"offset":1,"length":2}]}}}`,
		`{"token_ids":[1],"features":{"mm_hashes":{"image":["a","b"]},"mm_placeholders":{"image":[{"offset":1,"length":2}]}}}`,
		`{"token_ids":[1],"features":{"mm_hashes":{"image":["a"]},"mm_placeholders":{"image":[{"offset":-1,"length":2}]}}}`,
		`{"token_ids":[1],"features":[]}`, `{"token_ids":[1]`, `[]`, ``, `{"token_ids":7}`, `{"token_ids":[1],"token_ids":[2]}`, `{"token_ids":[1]]`, `{"token_ids":[1]"x":1}`, `{"token_ids"[1]}`,
	} {
		if f, err := reader([]byte(text)).rendered(); err == nil {
			t.Errorf("%s: got %+v", text, f)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"chat_render_plain", "completions_render_list", "tokenize_plain"} {
		_, answer := load(f, name)
		f.Add([]byte(answer))
	}
	f.Add([]byte(`{"tokenize_response":[{"id":1,"text":"x"}],"features":{"mm_hashes":{"i":["a"]},"mm_placeholders":{"i":[{"offset":1,"length":2}]}}}`))
	f.Add([]byte(`[{"id":1},{"id":2}]`))
	f.Add([]byte(`{"token_ids" : [1, 2] ,"features":null,"token_ids":[3]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = reader(text).listed()
		_, _ = reader(text).renderedFirst()
		// In small pieces it reads the same.
		whole, err1 := reader(text).rendered()
		pieces, err2 := newAnswerReader(iotest.OneByteReader(bytes.NewReader(text)), 1<<20).rendered()
		if (err1 == nil) != (err2 == nil) || err1 == nil && !reflect.DeepEqual(whole, pieces) {
			t.Fatalf("got %v, %v in one piece, %v, %v in many", whole, err1, pieces, err2)
		}
		if ids, err := reader(text).idObjects(); err == nil && len(ids) > len(text)/8 {
			t.Fatalf("%d ids of %d bytes", len(ids), len(text))
		}
		got, err := reader(text).rendered()
		if err != nil {
			return
		}
		// Another parser, on what both take; it ignores the case of names, so it is
		// given no other spelling.
		if strings.Count(strings.ToLower(string(text)), "token_ids") != bytes.Count(text, []byte("token_ids")) {
			return
		}
		var want struct {
			IDs []uint32 `json:"token_ids"`
		}
		d := json.NewDecoder(bytes.NewReader(text))
		if d.Decode(&want) == nil && len(want.IDs) > 0 && !bytes.Contains(text, []byte(`\`)) && !slices.Equal(got.tokens, want.IDs) {
			t.Fatalf("got %v, want %v", got.tokens, want.IDs)
		}
	})
}

// BenchmarkRendered reads the answer for a prompt of 100k tokens.
func BenchmarkRendered(b *testing.B) {
	ids := make([]int, 100_000)
	for i := range ids {
		ids[i] = i * 7919 % 151_936
	}
	text, _ := json.Marshal(map[string]any{"request_id": "x", "token_ids": ids, "features": nil, "sampling_params": map[string]any{"a": 1}})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if f, err := reader(text).rendered(); err != nil || len(f.tokens) != len(ids) {
			b.Fatal(err)
		}
	}
}
