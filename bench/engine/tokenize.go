package engine

import "encoding/json"

// tokenizeRequest has a prompt or a chat.
type tokenizeRequest struct {
	chatRequest
	Prompt              json.RawMessage `json:"prompt"`
	AddGenerationPrompt *bool           `json:"add_generation_prompt"`
	ReturnTokenStrs     bool            `json:"return_token_strs"`
}

func (q *tokenizeRequest) tokens() (tokens, error) {
	if q.Messages == nil {
		list, err := prompts(q.Prompt, "prompt")
		if err != nil {
			return nil, err
		}
		return list[0].ids, nil
	}
	conv, err := q.conversation()
	if err != nil {
		return nil, err
	}
	return conv.render(q.AddGenerationPrompt == nil || *q.AddGenerationPrompt), nil
}

func (c *call) tokenize() error {
	var q tokenizeRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	if _, err := c.model(q.Model); err != nil {
		return err
	}
	ids, err := q.tokens()
	if err != nil {
		return err
	}
	var words []string
	if q.ReturnTokenStrs {
		for _, id := range ids {
			words = append(words, tokens{id}.text())
		}
	}
	return c.answer(struct {
		Count       int      `json:"count"`
		MaxModelLen int      `json:"max_model_len"`
		Tokens      tokens   `json:"tokens"`
		TokenStrs   []string `json:"token_strs"`
	}{len(ids), c.s.cfg.MaxModelLen, ids, words})
}

// detokenize is exact for ids that came from text; others turn into whatever their bytes are.
func (c *call) detokenize() error {
	var q struct {
		Model  string  `json:"model"`
		Tokens *tokens `json:"tokens"`
	}
	if err := c.decode(&q); err != nil {
		return err
	}
	if _, err := c.model(q.Model); err != nil {
		return err
	}
	if q.Tokens == nil {
		return missing("tokens")
	}
	return c.answer(map[string]string{"prompt": q.Tokens.text()})
}
