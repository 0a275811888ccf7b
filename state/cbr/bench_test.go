package cbr

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvca/state/chain"
)

const english = `The gateway routes each request to the server most likely to hold its prefix. It learns from answers alone: no server needs to cooperate, and a node that restarts asks its peers for what it has missed. `

// chatOf is an ordinary chat with a tool, and turns of the given text until the
// body has about size bytes.
func chatOf(size int, text string, perMessage int) []byte {
	type msg struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	text = strings.Repeat(text, perMessage/len(text)+1)[:perMessage]
	body := struct {
		Messages    []msg          `json:"messages"`
		Model       string         `json:"model"`
		Temperature float64        `json:"temperature"`
		MaxTokens   int            `json:"max_tokens"`
		Stream      bool           `json:"stream"`
		Tools       []any          `json:"tools"`
		Extra       map[string]any `json:"stream_options"`
	}{
		Model: "meta-llama/Llama-3.3-70B-Instruct", Temperature: 0.7, MaxTokens: 1024, Stream: true,
		Extra: map[string]any{"include_usage": true},
		Tools: []any{map[string]any{"type": "function", "function": map[string]any{
			"name": "get_weather", "description": "Get the current weather of a place",
			"parameters": map[string]any{"type": "object", "properties": map[string]any{"place": map[string]any{"type": "string"}}, "required": []string{"place"}},
		}}},
	}
	for n := 0; n < size; n += perMessage {
		role := "user"
		if n/perMessage%2 == 1 {
			role = "assistant"
		}
		body.Messages = append(body.Messages, msg{role, fmt.Sprint(n, text)})
	}
	return marshal(body)
}

func marshal(v any) []byte {
	var sb strings.Builder
	enc := json.NewEncoder(&sb)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return []byte(sb.String())
}

// toolChat is an agent's session: short messages, calls, escaped arguments.
func toolChat(size int) []byte {
	var sb strings.Builder
	sb.WriteString(`{"model":"qwen3-32b","messages":[{"role":"system","content":"You are a careful agent."}`)
	for i := 0; sb.Len() < size; i++ {
		fmt.Fprintf(&sb, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%06d","type":"function","function":{"name":"read_file","arguments":"{\"path\": \"/src/part_%d.go\", \"limit\": 40}"}}]}`, i, i)
		fmt.Fprintf(&sb, `,{"role":"tool","tool_call_id":"call_%06d","content":"line one\n\tline two of %d\n— \u00e9nd"}`, i, i)
		fmt.Fprintf(&sb, `,{"role":"user","content":[{"type":"text","text":"go on with %d"}]}`, i)
	}
	sb.WriteString(`],"temperature":0.2,"stream":true}`)
	return []byte(sb.String())
}

func bodies() map[string][]byte {
	code := "func (e *Encoder) space() {\n\tif e.pos < len(e.body) {\n\t\te.skip(\"x\")\n\t}\n}\n"
	lines := "each request goes where its beginning lies\nand so nobody computes the same prefix twice\n"
	unicode := "Ворота направляют каждый запрос туда, где уже лежит его начало. 門は要求を最も近い場所へ送る。"
	return map[string][]byte{
		"chat-2kB":      chatOf(2_000, english, 700),
		"chat-32kB":     chatOf(32_000, english, 4_000),
		"chat-400kB":    chatOf(400_000, english, 20_000),
		"lines-400kB":   chatOf(400_000, lines, 4_000),
		"code-400kB":    chatOf(400_000, code, 20_000),
		"unicode-400kB": chatOf(400_000, unicode, len(unicode)*40),
		"tools-400kB":   toolChat(400_000),
		"escapes-400kB": []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`\n\"\u00e9\ud83d\ude00`, 400_000/22) + `"}]}`),
		"ids-400kB":     []byte(`{"model":"m","prompt":[1` + strings.Repeat(`, 12345`, 400_000/7) + `]}`),
	}
}

func endpointOfBench(name string) Endpoint {
	if strings.HasPrefix(name, "ids") {
		return Completions
	}
	return Chat
}

func BenchmarkBodyToHashes(b *testing.B) {
	for name, body := range bodies() {
		b.Run(name, func(b *testing.B) {
			var e Encoder
			var h chain.Hasher
			key := chain.DeriveKey(chain.DefaultClusterName)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				h.Reset(key, 512)
				if _, err := e.Encode(endpointOfBench(name), body, nil, &h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeOnly(b *testing.B) {
	for name, body := range bodies() {
		b.Run(name, func(b *testing.B) {
			var e Encoder
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Encode(endpointOfBench(name), body, nil, io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
