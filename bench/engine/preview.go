package engine

import (
	"net/http"
	"strconv"
)

// preview is a prompt as the engine would have it: what vLLM's render endpoints answer, in the members that matter to a cache.
type preview struct {
	RequestID  string          `json:"request_id"`
	TokenIDs   tokens          `json:"token_ids"`
	Offsets    *struct{}       `json:"token_offsets"`
	Features   *struct{}       `json:"features"`
	Parts      *struct{}       `json:"content_parts"`
	Sampling   previewSampling `json:"sampling_params"`
	Model      string          `json:"model"`
	OutputMode string          `json:"output_mode"`
	Stream     bool            `json:"stream"`
	StreamOpts *streamOptions  `json:"stream_options"`
	CacheSalt  *string         `json:"cache_salt"`
	Priority   int             `json:"priority"`
	KVTransfer *struct{}       `json:"kv_transfer_params"`
	ECTransfer *struct{}       `json:"ec_transfer_params"`
	Reasoning  *struct{}       `json:"reasoning_ended"`
	Parser     *struct{}       `json:"reasoning_parser_kwargs"`
	ReturnIDs  *struct{}       `json:"return_token_ids"`
}

type previewSampling struct {
	Temperature float64 `json:"temperature"`
	TopP        float64 `json:"top_p"`
	MaxTokens   int     `json:"max_tokens"`
	SkipCache   bool    `json:"skip_reading_prefix_cache"`
}

func (c *call) preview(id string, w wish, q sampling) preview {
	p := preview{
		RequestID: id, TokenIDs: w.prompt, Model: w.model, OutputMode: "tokens", Stream: q.Stream, StreamOpts: q.StreamOptions,
		CacheSalt: q.CacheSalt, Sampling: previewSampling{1, 1, w.maxTokens, w.anew},
	}
	if w.maxTokens == 0 {
		p.Sampling.MaxTokens = c.s.cfg.MaxModelLen - len(w.prompt)
	}
	if q.Temperature != nil {
		p.Sampling.Temperature = *q.Temperature
	}
	if q.TopP != nil {
		p.Sampling.TopP = *q.TopP
	}
	return p
}

// previewChat renders a chat and does not run it.
func (c *call) previewChat() error {
	var q chatRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	if q.Messages == nil {
		return missing("messages")
	}
	w, err := c.chatWish(&q)
	if err != nil {
		return err
	}
	return c.whole(c.preview(c.id("chatcmpl-"), w, q.sampling))
}

// previewCompletions does so with the prompts of a completion: a list, however many there are.
func (c *call) previewCompletions() error {
	var q completionRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	wishes, err := c.completionWishes(&q)
	if err != nil {
		return err
	}
	list, id := make([]preview, len(wishes)), c.id("cmpl-")
	for i, w := range wishes {
		name := id
		if len(wishes) > 1 {
			name += "-" + strconv.Itoa(i)
		}
		list[i] = c.preview(name, w, q.sampling)
	}
	return c.whole(list)
}

// whole answers at once, unless a failure in the middle of the answer is ordered.
func (c *call) whole(v any) error {
	if err := c.breakUnstreamed(); err != nil {
		return err
	}
	return c.answer(v)
}

// Lacks is what an engine does not have. By default there is nothing; real ones are older, or were started without.
type Lacks struct {
	// Render refuses the render endpoints, as vLLM's server does unless it is started with --enable-scale-out.
	Render bool
	// Tokenize has no /tokenize and /detokenize.
	Tokenize bool
	// TokenIDs ignores return_token_ids.
	TokenIDs bool
	// CachedTokens leaves them out of the usage, as without --enable-prompt-tokens-details.
	CachedTokens bool
	// EventSources has no /kv_event_sources, nor SGLang's /server_info.
	EventSources bool
}

var (
	errScaleOut = &apiError{
		Status: http.StatusForbidden, Kind: "Forbidden", Message: "This endpoint is disabled. Start the server with --enable-scale-out.",
	}
	errNoEndpoint = &apiError{Status: http.StatusNotFound, Kind: "NotFoundError", Message: "Not Found"}
)

// unless is an endpoint, or its refusal where the engine lacks it.
func unless(lacks bool, refusal *apiError, h func(*call) error) func(*call) error {
	if !lacks {
		return h
	}
	return func(*call) error { return refusal }
}

// promptIDs are the prompt's ids in the first chunk of a stream that wants them.
func (j *job) promptIDs(wanted bool) string {
	if !wanted || j.greeted {
		return "null"
	}
	return encode(j.prompt)
}

// freshIDs are the ids of what has been generated since the last chunk.
func (j *job) freshIDs(wanted bool) string {
	if !wanted {
		return "null"
	}
	ids := j.answer.appendBody(nil)
	from := j.told
	j.told = min(j.produced, len(ids))
	return encode(ids[from:j.told])
}
