package template

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

const show = `{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}`

func mustCompile(t testing.TB, source string) *Template {
	t.Helper()
	tmpl, err := Compile(source, map[string]string{"bos_token": "<s>"})
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestWhatOnlyTheEngineKnowsIsUnsupported(t *testing.T) {
	tmpl := mustCompile(t, show)
	for name, body := range map[string]string{
		"image":           `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`,
		"part of no type": `{"messages":[{"role":"user","content":[{"text":"x"}]}]}`,
		"own template":    `{"messages":[],"chat_template":"x"}`,
		"kwargs tools":    `{"messages":[],"chat_template_kwargs":{"tools":[]}}`,
		"truncation":      `{"messages":[],"truncate_prompt_tokens":3}`,
		"own tokens":      `{"messages":[],"kv_transfer_params":{"prompt_token_ids":[1]}}`,
		"nan arguments":   `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"x\": NaN}"}}]}]}`,
	} {
		if _, err := tmpl.Render([]byte(body)); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: got %v, want ErrUnsupported", name, err)
		}
	}
}

func TestMalformedRequestsAreRefused(t *testing.T) {
	tmpl := mustCompile(t, show)
	for _, body := range []string{
		``, `[]`, `{}`, `{"messages":1}`, `{"messages":[1]}`, `{"messages":[{}]}`, `{"messages":[{"role":"user","content":1}]}`,
		`{"messages":[{"role":"user","content":[1]}]}`, `{"messages":[],"tools":[]}`, `{"messages":[],"tools":[{"type":"x"}]}`,
		`{"messages":[],"tools":[{"function":{}}]}`, `{"messages":[],"chat_template_kwargs":1}`,
		`{"messages":[{"role":"assistant","tool_calls":[{}]}]}`, `{"messages":[],"continue_final_message":true}`,
		`{"messages":[],"add_generation_prompt":false,"continue_final_message":true}`,
		`{"messages":[` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `]}`,
	} {
		if out, err := tmpl.Render([]byte(body)); err == nil || errors.Is(err, ErrUnsupported) {
			t.Errorf("%.60s: got %q, %v, want an error that isn't ErrUnsupported", body, out, err)
		}
	}
}

func TestClientsVariablesComeBeforeSpecialTokens(t *testing.T) {
	tmpl := mustCompile(t, `{{ bos_token }}`)
	out, err := tmpl.Render([]byte(`{"messages":[],"chat_template_kwargs":{"bos_token":"mine"}}`))
	if err != nil || out != "mine" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestDateIsThatOfTheRendering(t *testing.T) {
	tmpl := mustCompile(t, `{{ strftime_now("%d %b %Y") }}`)
	tmpl.now = func() time.Time { return time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC) }
	out, err := tmpl.Render([]byte(`{"messages":[]}`))
	if err != nil || out != "02 Jan 2027" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestRequestsRenderConcurrently(t *testing.T) {
	tmpl := mustCompile(t, show)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out, err := tmpl.Render([]byte(`{"messages":[{"role":"user","content":"x"}]}`))
			if err != nil || out != "user=x;" {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
	wg.Wait()
}

func FuzzRender(f *testing.F) {
	eachGolden(f, "testdata/vllm.jsonl", func(g golden) { f.Add([]byte(g.Body)) })
	parts := mustCompile(f, `{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{{ m.tool_calls }}{% endfor %}{{ tools | tojson }}`)
	plain := mustCompile(f, show)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, tmpl := range []*Template{parts, plain} {
			one, err := tmpl.Render(body)
			again, errAgain := tmpl.Render(body)
			if one != again || (err == nil) != (errAgain == nil) {
				t.Errorf("two renderings differ: %q, %v and %q, %v", one, err, again, errAgain)
			}
		}
	})
}
