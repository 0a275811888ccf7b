package engine

import (
	"encoding/json"
)

type responsesRequest struct {
	Model           string          `json:"model"`
	Instructions    string          `json:"instructions"`
	Input           json.RawMessage `json:"input"`
	MaxOutputTokens *int            `json:"max_output_tokens"`
	Temperature     *float64        `json:"temperature"`
	Stream          bool            `json:"stream"`
	Store           *bool           `json:"store"`
	Previous        *string         `json:"previous_response_id"`
	Tools           []responsesTool `json:"tools"`
	ToolChoice      json.RawMessage `json:"tool_choice"`
	CacheSalt       *string         `json:"cache_salt"`
}

type responsesTool struct {
	raw    json.RawMessage
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"parameters"`
}

func (t *responsesTool) UnmarshalJSON(raw []byte) error {
	type plain responsesTool
	t.raw = append(json.RawMessage(nil), raw...)
	return json.Unmarshal(raw, (*plain)(t))
}

// inputItem is one element of a list given as input.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// turns translates the input: a text, or a list of messages, calls and their results.
func (q *responsesRequest) turns() ([]message, error) {
	if len(q.Input) == 0 || string(q.Input) == "null" {
		return nil, missing("input")
	}
	if q.Input[0] == '"' {
		text, err := content(q.Input)
		return []message{{Role: "user", Content: text}}, err
	}
	var items []inputItem
	if err := json.Unmarshal(q.Input, &items); err != nil {
		return nil, decodeError(err)
	}
	var turns []message
	for _, it := range items {
		m, err := it.turn()
		if err != nil {
			return nil, decodeError(err)
		}
		if m.Role != "" {
			turns = append(turns, m)
		}
	}
	return turns, nil
}

func (it inputItem) turn() (message, error) {
	switch it.Type {
	case "function_call":
		return message{Role: "assistant", Calls: []toolCall{{Name: it.Name, Arguments: it.Arguments}}}, nil
	case "function_call_output":
		text, err := content(it.Output)
		return message{Role: "tool", Content: text}, err
	case "", "message":
		text, err := content(it.Content)
		return message{Role: it.Role, Content: text}, err
	}
	return message{}, nil // reasoning and the like: not rendered
}

// history is what the request continues: the turns before it, and its own.
func (c *call) history(q *responsesRequest) ([]message, error) {
	turns, err := q.turns()
	if err != nil || q.Previous == nil {
		return turns, err
	}
	before, ok := c.s.responses.get(*q.Previous)
	if !ok {
		return nil, notFound("response_id", "Response with id '%s' not found.", *q.Previous)
	}
	return append(before.turns[:len(before.turns):len(before.turns)], turns...), nil
}

func (q *responsesRequest) demanded() (*tool, error) {
	list := make([]tool, len(q.Tools))
	for i, t := range q.Tools {
		list[i] = tool{t.Name, t.Schema}
	}
	var named struct {
		Name string `json:"name"`
	}
	switch {
	case string(q.ToolChoice) == `"required"`:
		return pickTool(list, "")
	case len(q.ToolChoice) > 0 && q.ToolChoice[0] == '{':
		if err := json.Unmarshal(q.ToolChoice, &named); err != nil {
			return nil, decodeError(err)
		}
		return pickTool(list, named.Name)
	}
	return nil, nil
}

func (c *call) createResponse() error {
	var q responsesRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	turns, err := c.history(&q)
	if err != nil {
		return err
	}
	j, model, err := c.responsesJob(&q, turns)
	if err != nil {
		return err
	}
	reply := responsesReply{c: c, id: c.id("resp_"), item: c.id("msg_"), created: c.created(), model: model, q: &q, turns: turns, job: j}
	if q.Stream {
		return reply.stream(c.stream())
	}
	if err := c.complete([]*job{j}); err != nil {
		return err
	}
	return c.answer(reply.keep())
}

func (c *call) responsesJob(q *responsesRequest, turns []message) (*job, string, error) {
	w, err := c.wish(sampling{Model: q.Model, MaxTokens: q.MaxOutputTokens, CacheSalt: q.CacheSalt})
	if err != nil {
		return nil, "", err
	}
	parts := make([]json.RawMessage, len(q.Tools))
	for i, t := range q.Tools {
		parts[i] = t.raw
	}
	conv := conversation{preamble: preamble(parts...), messages: turns}
	if q.Instructions != "" {
		conv.messages = append([]message{{Role: "system", Content: q.Instructions}}, turns...)
	}
	w.prompt = conv.render(true)
	if w.tool, err = q.demanded(); err != nil {
		return nil, "", err
	}
	if err := c.checkLength(len(w.prompt), w.maxTokens); err != nil {
		return nil, "", err
	}
	return c.s.newJob(0, w), w.model, nil
}
