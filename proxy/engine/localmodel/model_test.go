package localmodel

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvca/state/cbr"
)

// qwen3 is the tokenizer and chat template of Qwen3; see testdata/README.md.
func qwen3(t testing.TB) *Model {
	t.Helper()
	dir := os.Getenv("KVCA_TOKENIZERS")
	if dir == "" {
		t.Skip("KVCA_TOKENIZERS names no folder of tokenizers")
	}
	m, err := Open(filepath.Join(dir, "qwen3"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// rendered is a request to vLLM with the tokens that it made of it.
type rendered struct {
	Name     string          `json:"name"`
	Endpoint string          `json:"endpoint"`
	Body     json.RawMessage `json:"body"`
	Tokens   []uint32        `json:"tokens"`
}

func TestTokensAreThoseOfVLLM(t *testing.T) {
	data, err := os.ReadFile("testdata/rendered.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []rendered
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	m := qwen3(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := m.Tokens(cbr.EndpointOf(c.Endpoint), c.Body)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.Tokens) {
				t.Errorf("got %v\nwant %v", got, c.Tokens)
			}
		})
	}
}

// small opens the folder of a model with few tokens, with these files changed.
func small(t *testing.T, files map[string]string) (*Model, error) {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{"tokenizer_config.json": `{"eos_token":{"content":"<|end|>"},"chat_template":` +
		`"{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}"}`}
	data, err := os.ReadFile("../tokenizer/testdata/small.json")
	if err != nil {
		t.Fatal(err)
	}
	all["tokenizer.json"] = string(data)
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Open(dir)
}

const hello = `{"messages":[{"role":"user","content":"hi"}]}`

func TestChatIsRenderedAndTokenized(t *testing.T) {
	m, err := small(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Tokens(cbr.Chat, []byte(hello))
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.tokens.Append(nil, "user:hi<|end|>", false)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTemplateFileComesBeforeConfig(t *testing.T) {
	m, err := small(t, map[string]string{"chat_template.jinja": "other"})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := m.Tokens(cbr.Chat, []byte(hello))
	want, _ := m.tokens.Append(nil, "other", false)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRequestsWithToolsHaveTheirTemplate(t *testing.T) {
	m, err := small(t, map[string]string{"tokenizer_config.json": `{"chat_template":[` +
		`{"name":"default","template":"plain"},{"name":"tool_use","template":"tools"},{"name":"rag","template":"{% bad"}]}`})
	if err != nil {
		t.Fatal(err)
	}
	for body, text := range map[string]string{
		hello: "plain",
		`{"messages":[],"tools":[{"type":"function","function":{"name":"f"}}]}`: "tools",
	} {
		got, err := m.Tokens(cbr.Chat, []byte(body))
		want, _ := m.tokens.Append(nil, text, false)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", body, got, err, want)
		}
	}
}

func TestWhatCannotBeToldIsUnsupported(t *testing.T) {
	plain, err := small(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	gptOSS, err := small(t, map[string]string{"config.json": `{"model_type":"gpt_oss"}`})
	if err != nil {
		t.Fatal(err)
	}
	bos, err := small(t, map[string]string{"tokenizer_config.json": `{"add_bos_token":true}`})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		m        *Model
		endpoint cbr.Endpoint
		body     string
	}{
		{"messages endpoint", plain, cbr.Messages, hello},
		{"responses endpoint", plain, cbr.Responses, `{"input":"x"}`},
		{"media", plain, cbr.Chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`},
		{"chat template of the request", plain, cbr.Chat, `{"messages":[],"chat_template":"x"}`},
		{"truncation", plain, cbr.Completions, `{"prompt":"x","truncate_prompt_tokens":5}`},
		{"embeddings", plain, cbr.Completions, `{"prompt_embeds":"x"}`},
		{"tokens of another engine", plain, cbr.Completions, `{"prompt":"x","kv_transfer_params":{"prompt_token_ids":[1]}}`},
		{"a model with its own renderer", gptOSS, cbr.Chat, hello},
		{"a model without a template", bos, cbr.Chat, hello},
		{"a token that versions disagree on", bos, cbr.Completions, `{"prompt":"x"}`},
	} {
		if _, err := c.m.Tokens(c.endpoint, []byte(c.body)); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: got %v, want ErrUnsupported", c.name, err)
		}
	}
}

func TestMalformedRequestsAreErrorsOfTheirOwn(t *testing.T) {
	m, err := small(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"", "[]", "{}", `{"prompt":null}`, `{"prompt":[]}`, `{"prompt":[1,"x"]}`, `{"prompt":[-1]}`, `{"prompt":{}}`, `{"prompt":"x","add_special_tokens":1}`, `{"prompt":"x"} 1`} {
		if _, err := m.Tokens(cbr.Completions, []byte(body)); err == nil || errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: got %v, want an error that isn't ErrUnsupported", body, err)
		}
	}
}

func TestOpenSaysWhichFileIsBad(t *testing.T) {
	for name, text := range map[string]string{
		"tokenizer.json":        "{}",
		"tokenizer_config.json": "[]",
	} {
		if _, err := small(t, map[string]string{name: text}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names the file", name, err)
		}
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty folder: got %v", err)
	}
	m, err := small(t, map[string]string{"chat_template.jinja": "{% if %}"})
	if err != nil || m.NoChat() == nil {
		t.Errorf("bad template: got %v, %v, want a model without chat", err, m.NoChat())
	}
}

func BenchmarkChat32kB(b *testing.B) {
	m := qwen3(b)
	text := strings.Repeat("The index holds what each engine has in its cache (blocks of 16 tokens), and a lookup is 1 walk.\n", 40)
	var turns []map[string]string
	for i := range 8 {
		turns = append(turns, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	body, _ := json.Marshal(map[string]any{"messages": turns})
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Tokens(cbr.Chat, body); err != nil {
			b.Fatal(err)
		}
	}
}
