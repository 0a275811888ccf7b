package engine

import (
	"encoding/json"
)

// messagesRequest is Anthropic's shape.
type messagesRequest struct {
	Model       string             `json:"model"`
	System      json.RawMessage    `json:"system"`
	Messages    []anthropicMessage `json:"messages"`
	MaxTokens   *int               `json:"max_tokens"`
	Temperature *float64           `json:"temperature"`
	Stream      bool               `json:"stream"`
	Tools       []anthropicTool    `json:"tools"`
	ToolChoice  *anthropicChoice   `json:"tool_choice"`
	CacheSalt   string             `json:"cache_salt"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type anthropicTool struct {
	raw    json.RawMessage
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"input_schema"`
}

func (t *anthropicTool) UnmarshalJSON(raw []byte) error {
	type plain anthropicTool
	t.raw = append(json.RawMessage(nil), raw...)
	return json.Unmarshal(raw, (*plain)(t))
}

type anthropicChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

type anthropicBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"`
}

func (q *messagesRequest) conversation() (conversation, error) {
	parts := make([]json.RawMessage, len(q.Tools))
	for i, t := range q.Tools {
		parts[i] = t.raw
	}
	conv := conversation{preamble: preamble(parts...)}
	system, err := content(q.System)
	if err != nil {
		return conv, decodeError(err)
	}
	if system != "" {
		conv.messages = append(conv.messages, message{Role: "system", Content: system})
	}
	for _, m := range q.Messages {
		turns, err := m.turns()
		if err != nil {
			return conv, decodeError(err)
		}
		conv.messages = append(conv.messages, turns...)
	}
	return conv, nil
}

// turns takes a message apart: results of tools are turns of their own in a chat template.
func (m anthropicMessage) turns() ([]message, error) {
	if len(m.Content) == 0 || m.Content[0] != '[' {
		text, err := content(m.Content)
		return []message{{Role: m.Role, Content: text}}, err
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(m.Content, &blocks); err != nil {
		return nil, err
	}
	var turns []message
	own := message{Role: m.Role}
	for _, raw := range blocks {
		var b anthropicBlock
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, err
		}
		switch b.Type {
		case "text":
			own.Content += b.Text
		case "tool_use":
			own.Calls = append(own.Calls, toolCall{Name: b.Name, Arguments: compact(b.Input)})
		case "tool_result":
			text, err := content(b.Content)
			if err != nil {
				return nil, err
			}
			turns = append(turns, message{Role: "tool", Content: text})
		case "thinking", "redacted_thinking":
		default:
			own.Content += compact(raw)
		}
	}
	if own.Content != "" || own.Calls != nil || len(turns) == 0 {
		turns = append(turns, own)
	}
	return turns, nil
}

func (q *messagesRequest) demanded() (*tool, error) {
	list := make([]tool, len(q.Tools))
	for i, t := range q.Tools {
		list[i] = tool{t.Name, t.Schema}
	}
	switch {
	case q.ToolChoice == nil:
	case q.ToolChoice.Type == "any":
		return pickTool(list, "")
	case q.ToolChoice.Type == "tool":
		return pickTool(list, q.ToolChoice.Name)
	}
	return nil, nil
}

func (c *call) messages() error {
	var q messagesRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	j, model, err := c.messagesJob(&q)
	if err != nil {
		return err
	}
	reply := anthropicReply{id: c.id("msg_"), model: model, job: j}
	if q.Stream {
		return reply.stream(c.stream())
	}
	if err := c.complete([]*job{j}); err != nil {
		return err
	}
	return c.answer(reply.message(reply.blocks(), reply.stopReason()))
}

func (c *call) messagesJob(q *messagesRequest) (*job, string, error) {
	if q.Messages == nil {
		return nil, "", missing("messages")
	}
	if q.MaxTokens == nil {
		return nil, "", missing("max_tokens")
	}
	w, err := c.wish(sampling{Model: q.Model, MaxTokens: q.MaxTokens})
	if err != nil {
		return nil, "", err
	}
	conv, err := q.conversation()
	if err != nil {
		return nil, "", err
	}
	w.prompt, w.salt = conv.render(true), q.CacheSalt
	if w.tool, err = q.demanded(); err != nil {
		return nil, "", err
	}
	if err := c.checkLength(len(w.prompt), w.maxTokens); err != nil {
		return nil, "", err
	}
	return c.s.newJob(0, w), w.model, nil
}

func (c *call) countTokens() error {
	var q messagesRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	conv, err := q.conversation()
	if err != nil {
		return err
	}
	return c.answer(map[string]int{"input_tokens": len(conv.render(true))})
}
