package engine

import "encoding/json"

// anthropicReply is an answer in the shape of Anthropic's messages.
type anthropicReply struct {
	id    string
	model string
	job   *job
}

// anthropicUsage counts as Anthropic does: tokens read from the cache are not among the input tokens.
type anthropicUsage struct {
	InputTokens   int `json:"input_tokens"`
	OutputTokens  int `json:"output_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
}

type anthropicAnswer struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Content      []any          `json:"content"`
	Model        string         `json:"model"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        anthropicUsage `json:"usage"`
}

func (a *anthropicReply) message(content []any, stop *string) anthropicAnswer {
	return anthropicAnswer{ID: a.id, Type: "message", Role: "assistant", Model: a.model, Content: content, StopReason: stop, Usage: a.usage()}
}

func (a *anthropicReply) usage() anthropicUsage {
	return anthropicUsage{InputTokens: len(a.job.prompt) - a.job.cached, OutputTokens: a.job.produced, CacheRead: a.job.cached}
}

func (a *anthropicReply) blocks() []any {
	list := []any{}
	for _, k := range a.job.answer.Calls {
		list = append(list, toolUse(k, json.RawMessage(k.Arguments)))
	}
	if len(list) == 0 {
		list = append(list, map[string]string{"type": "text", "text": a.job.text})
	}
	return list
}

func toolUse(k toolCall, input json.RawMessage) any {
	return struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}{"tool_use", k.ID, k.Name, input}
}

func (a *anthropicReply) stopReason() *string {
	reason := map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}[a.job.finish]
	return &reason
}

func (a *anthropicReply) stream(st *stream) error {
	begun := false
	err := st.follow([]*job{a.job}, func(j *job) {
		if !begun {
			begun = true
			a.begin(st)
		}
		if text := j.fresh(); text != "" {
			st.event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`,
				encode(text), `}}`)
		}
		if j.done {
			a.finish(st)
		}
	})
	return err
}

func (a *anthropicReply) begin(st *stream) {
	st.event("message_start", `{"type":"message_start","message":`, encode(a.message([]any{}, nil)), `}`)
	var block any = map[string]string{"type": "text", "text": ""}
	for _, k := range a.job.answer.Calls {
		block = toolUse(k, json.RawMessage("{}"))
	}
	st.event("content_block_start", `{"type":"content_block_start","index":0,"content_block":`, encode(block), `}`)
}

func (a *anthropicReply) finish(st *stream) {
	for _, k := range a.job.answer.Calls {
		st.event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":`,
			encode(k.Arguments), `}}`)
	}
	st.event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	st.event("message_delta", `{"type":"message_delta","delta":{"stop_reason":`, encode(a.stopReason()), `,"stop_sequence":null},"usage":`,
		encode(a.usage()), `}`)
	st.event("message_stop", `{"type":"message_stop"}`)
}
