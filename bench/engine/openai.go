package engine

import "encoding/json"

// sampling is what chat and completions share: what is asked for, apart from the prompt.
type sampling struct {
	Model               string         `json:"model"`
	MaxTokens           *int           `json:"max_tokens"`
	MaxCompletionTokens *int           `json:"max_completion_tokens"`
	Temperature         *float64       `json:"temperature"`
	TopP                *float64       `json:"top_p"`
	N                   *int           `json:"n"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options"`
	CacheSalt           *string        `json:"cache_salt"`
	ReturnTokenIDs      bool           `json:"return_token_ids"`
	PromptLogprobs      *int           `json:"prompt_logprobs"`
}

type streamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats"`
}

// maxChoices bounds n times the prompts of one request.
const maxChoices = 128

// wish checks the common members and turns them into the common part of a wish.
func (c *call) wish(p sampling) (wish, error) {
	model, err := c.model(p.Model)
	if err != nil {
		return wish{}, err
	}
	w := wish{model: model, anew: p.PromptLogprobs != nil}
	if p.CacheSalt != nil {
		if w.salt = *p.CacheSalt; w.salt == "" {
			return wish{}, badRequest("cache_salt", "Parameter 'cache_salt' must be a non-empty string if provided. (parameter=cache_salt)")
		}
	}
	if p.N != nil && (*p.N < 1 || *p.N > maxChoices) {
		return wish{}, badRequest("n", "n must be from 1 to %d, got %d. (parameter=n, value=%d)", maxChoices, *p.N, *p.N)
	}
	limit := p.MaxTokens
	if p.MaxCompletionTokens != nil {
		limit = p.MaxCompletionTokens
	}
	if limit != nil {
		if w.maxTokens = *limit; w.maxTokens < 1 {
			return wish{}, badRequest("max_tokens", "max_tokens must be at least 1, got %d. (parameter=max_tokens, value=%d)", *limit, *limit)
		}
	}
	return w, nil
}

func (p sampling) choices() int {
	if p.N == nil {
		return 1
	}
	return *p.N
}

func (p sampling) includeUsage() bool { return p.StreamOptions != nil && p.StreamOptions.IncludeUsage }

func (p sampling) continuousUsage() bool {
	return p.includeUsage() && p.StreamOptions.ContinuousUsageStats
}

// usage is how chat and completions count.
type usage struct {
	PromptTokens            int            `json:"prompt_tokens"`
	TotalTokens             int            `json:"total_tokens"`
	CompletionTokens        int            `json:"completion_tokens"`
	PromptTokensDetails     *promptDetails `json:"prompt_tokens_details,omitempty"`
	CompletionTokensDetails *struct{}      `json:"completion_tokens_details"`
}

type promptDetails struct {
	CachedTokens        int  `json:"cached_tokens"`
	CreatedCacheTokens  int  `json:"created_cache_tokens"`
	MultimodalTokensNil *int `json:"multimodal_tokens"`
}

// usageOf adds up jobs. The prompt of several choices counts once.
func usageOf(jobs []*job, choices int) usage {
	u, cached, hide := usage{}, 0, false
	for i, j := range jobs {
		u.CompletionTokens += j.produced
		if i%choices == 0 {
			u.PromptTokens += len(j.prompt)
			cached += j.cached
		}
		hide = j.hideCached
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	if !hide {
		u.PromptTokensDetails = &promptDetails{CachedTokens: cached}
	}
	return u
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "null" // the values encoded here are strings, numbers and lists of them
	}
	return string(text)
}

// content reads a message's content: text, null, or a list of parts. Parts that are no text count as their own JSON, so that
// another image is another prompt.
func content(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", err
	}
	all := ""
	for _, part := range parts {
		text, err := contentPart(part)
		if err != nil {
			return "", err
		}
		all += text
	}
	return all, nil
}

func contentPart(raw json.RawMessage) (string, error) {
	if len(raw) > 0 && raw[0] == '"' {
		return content(raw)
	}
	var p struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return "", err
	}
	if p.Text != nil {
		return *p.Text, nil
	}
	return compact(raw), nil
}
