package engine

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// What a server's engine has cached after an answer is what ChatPrompt names, to the block.
func TestPromptNamesTheBlocksThatTheEngineCaches(t *testing.T) {
	const unit = 16
	p := Profile8B
	p.BlockTokens, p.KVTokens = unit, 4096
	s := NewServer(ServerConfig{Profile: p, Speedup: 100})
	s.Start(t.Context())
	defer s.Close()
	body := `{"model":"sim","max_tokens":40,"messages":[{"role":"system","content":"` + strings.Repeat("be brief ", 40) +
		`"},{"role":"user","content":"what is it?"}]}`
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(body)))
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	prompt, err := ChatPrompt([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if prompt.Tokens() != answer.Usage.Prompt {
		t.Errorf("%d tokens, the engine counted %d", prompt.Tokens(), answer.Usage.Prompt)
	}
	blocks := prompt.BlocksWith(answer.Choices[0].Message.Content, unit)
	if !slices.Equal(blocks[:len(prompt.Blocks(unit))], prompt.Blocks(unit)) || len(blocks) <= len(prompt.Blocks(unit)) {
		t.Errorf("%d blocks with the answer do not continue the prompt's %d", len(blocks), len(prompt.Blocks(unit)))
	}
	// The last token of an answer is sampled and never computed.
	s.Inspect(func(e *Engine) {
		if cached := e.Cached(blocks); cached < len(blocks)-1 || e.CachedBlocks() != cached {
			t.Errorf("%d of %d named blocks are cached, %d are in all", cached, len(blocks), e.CachedBlocks())
		}
	})
}

// A follow-up repeats the ends of the messages before it.
func TestPromptEndsAreRepeatedByFollowUps(t *testing.T) {
	const first = `{"role":"system","content":"be brief"},{"role":"user","content":"why?"}`
	a, err := ChatPrompt([]byte(`{"model":"sim","messages":[` + first + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := ChatPrompt([]byte(`{"model":"sim","messages":[` + first + `,{"role":"assistant","content":"no"},{"role":"user","content":"oh"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Ends) != 2 || len(b.Ends) != 4 || !slices.Equal(a.Ends, b.Ends[:2]) {
		t.Errorf("ends %v, then %v", a.Ends, b.Ends)
	}
	if last := b.Ends[3]; last.Tokens != b.Tokens()-4 { // the four tokens that ask for the answer
		t.Errorf("the last message ends at %d of %d tokens", last.Tokens, b.Tokens())
	}
}
