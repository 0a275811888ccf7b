package prompt

import (
	"encoding/json"

	"kvca/state/cbr"
)

// probe is a request whose tokens every way should agree on.
type probe struct {
	name     string
	endpoint cbr.Endpoint
	// rest is the body after its model's name.
	rest string
}

// The probes are about what templates and tokenizers get wrong: turns, system
// messages, the order of a tool's members, arguments of calls, digits, space, and
// text beyond ASCII. Tools are not to be called, since engines refuse such requests
// unless they have been told how to read calls.
var probes = []probe{
	{"plain", cbr.Chat, `"messages":[{"role":"user","content":"Hello, world! How are you?"}]`},
	{"system", cbr.Chat, `"messages":[{"role":"system","content":"You are a careful assistant.\nAnswer in one line."},` +
		`{"role":"user","content":"What is 12345 + 67890?  (two spaces,\ttab)"}]`},
	{"turns", cbr.Chat, `"messages":[{"role":"user","content":"Name a colour."},{"role":"assistant","content":"Blue."},` +
		`{"role":"user","content":[{"type":"text","text":"Another one,"},{"type":"text","text":"please."}]}]`},
	{"tools", cbr.Chat, `"messages":[{"role":"user","content":"Weather in Oslo?"},{"role":"assistant","content":"","tool_calls":[` +
		`{"id":"call_0","type":"function","function":{"name":"weather","arguments":"{\"unit\": \"C\", \"city\": \"Oslo\"}"}}]},` +
		`{"role":"tool","tool_call_id":"call_0","content":"-3"},{"role":"user","content":"And tomorrow?"}],` +
		`"tools":[{"type":"function","function":{"name":"weather","description":"Looks out of the window.","parameters":` +
		`{"type":"object","required":["city"],"properties":{"unit":{"type":"string","enum":["C","F"]},"city":{"type":"string"}}}}}],` +
		`"tool_choice":"none"`},
	{"unicode", cbr.Chat, `"messages":[{"role":"user","content":"Gr\u00fc\u00dfe, \u4f60\u597d, \ud83d\udc69\u200d\ud83d\udd2c e\u0301 \u0e44\u0e17\u0e22 \u0627\u0644 <|none|> 1\u00bd \u00a0x"}]`},
	{"completion", cbr.Completions, `"prompt":"The quick brown fox\n\n  jumps over 1234567 lazy dogs.","max_tokens":1`},
}

// body is the request for a model. It asks for an answer of one token, though none
// is made.
func (p *probe) body(model string) []byte {
	name, _ := json.Marshal(model) // a string: can't fail
	body := append([]byte(`{"model":`), name...)
	body = append(body, ',')
	body = append(body, p.rest...)
	return append(body, '}')
}
