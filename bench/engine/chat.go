package engine

import (
	"encoding/json"
	"strconv"
)

type chatRequest struct {
	sampling
	Messages           []chatMessage   `json:"messages"`
	Tools              []chatTool      `json:"tools"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	Documents          json.RawMessage `json:"documents"`
	ChatTemplate       json.RawMessage `json:"chat_template"`
	ChatTemplateKwargs json.RawMessage `json:"chat_template_kwargs"`
	ReasoningEffort    json.RawMessage `json:"reasoning_effort"`
}

type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []chatCall      `json:"tool_calls"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// chatTool keeps the tool as it was written, since that is what a template renders.
type chatTool struct {
	raw      json.RawMessage
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func (t *chatTool) UnmarshalJSON(raw []byte) error {
	type plain chatTool
	t.raw = append(json.RawMessage(nil), raw...)
	return json.Unmarshal(raw, (*plain)(t))
}

// conversation translates the request for the template.
func (q *chatRequest) conversation() (conversation, error) {
	parts := make([]json.RawMessage, 0, len(q.Tools)+4)
	for _, t := range q.Tools {
		parts = append(parts, t.raw)
	}
	parts = append(parts, q.Documents, q.ChatTemplate, q.ChatTemplateKwargs, q.ReasoningEffort)
	conv := conversation{preamble: preamble(parts...)}
	for _, m := range q.Messages {
		text, err := content(m.Content)
		if err != nil {
			return conv, decodeError(err)
		}
		turn := message{Role: m.Role, Content: text}
		for _, k := range m.ToolCalls {
			turn.Calls = append(turn.Calls, toolCall{Name: k.Function.Name, Arguments: k.Function.Arguments})
		}
		conv.messages = append(conv.messages, turn)
	}
	return conv, nil
}

// demanded is the tool that must be called, if one must: any will do, or the one of that name.
func (q *chatRequest) demanded() (*tool, error) {
	list := make([]tool, len(q.Tools))
	for i, t := range q.Tools {
		list[i] = tool{t.Function.Name, t.Function.Parameters}
	}
	var named struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case string(q.ToolChoice) == `"required"`:
		return pickTool(list, "")
	case len(q.ToolChoice) > 0 && q.ToolChoice[0] == '{':
		if err := json.Unmarshal(q.ToolChoice, &named); err != nil {
			return nil, decodeError(err)
		}
		return pickTool(list, named.Function.Name)
	}
	return nil, nil
}

func pickTool(list []tool, name string) (*tool, error) {
	for i := range list {
		if name == "" || list[i].Name == name {
			return &list[i], nil
		}
	}
	return nil, badRequest("tool_choice", "The tool specified in `tool_choice` does not match any of the specified `tools`")
}

func (c *call) chat() error {
	var q chatRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	if q.Messages == nil {
		return missing("messages")
	}
	q.ReturnTokenIDs = q.ReturnTokenIDs && !c.s.cfg.Lacks.TokenIDs
	jobs, model, err := c.chatJobs(&q)
	if err != nil {
		return err
	}
	reply := chatReply{id: c.id("chatcmpl-"), created: c.created(), model: model, q: &q, jobs: jobs}
	if q.Stream {
		return reply.stream(c.stream())
	}
	if err := c.complete(jobs); err != nil {
		return err
	}
	return c.answer(reply.whole())
}

// chatWish is what the request asks for, its prompt rendered.
func (c *call) chatWish(q *chatRequest) (wish, error) {
	w, err := c.wish(q.sampling)
	if err != nil {
		return w, err
	}
	conv, err := q.conversation()
	if err != nil {
		return w, err
	}
	w.prompt = conv.render(true)
	if w.tool, err = q.demanded(); err != nil {
		return w, err
	}
	return w, c.checkLength(len(w.prompt), w.maxTokens)
}

func (c *call) chatJobs(q *chatRequest) ([]*job, string, error) {
	w, err := c.chatWish(q)
	if err != nil {
		return nil, "", err
	}
	jobs := make([]*job, q.choices())
	for i := range jobs {
		jobs[i] = c.s.newJob(i, w)
	}
	return jobs, w.model, nil
}

// chatReply is an answer in the shape of chat completions.
type chatReply struct {
	id      string
	created int64
	model   string
	q       *chatRequest
	jobs    []*job
}

const fingerprint = "vllm-sim"

type chatChoice struct {
	Index        int        `json:"index"`
	Message      chatAnswer `json:"message"`
	Logprobs     *struct{}  `json:"logprobs"`
	FinishReason string     `json:"finish_reason"`
	StopReason   *string    `json:"stop_reason"`
	TokenIDs     tokens     `json:"token_ids"`
	Routed       *string    `json:"routed_experts"`
}

type chatAnswer struct {
	Role         string     `json:"role"`
	Content      *string    `json:"content"`
	Refusal      *string    `json:"refusal"`
	Annotations  *string    `json:"annotations"`
	Audio        *string    `json:"audio"`
	FunctionCall *string    `json:"function_call"`
	ToolCalls    []chatCall `json:"tool_calls,omitempty"`
	Reasoning    *string    `json:"reasoning"`
}

func (a *chatReply) whole() any {
	choices := make([]chatChoice, len(a.jobs))
	var ids tokens
	for i, j := range a.jobs {
		choices[i] = chatChoice{Index: j.index, Message: chatAnswer{Role: "assistant", ToolCalls: callsOf(j)}, FinishReason: j.finish}
		if choices[i].Message.ToolCalls == nil {
			choices[i].Message.Content = &j.text
		}
		if a.q.ReturnTokenIDs {
			choices[i].TokenIDs, ids = j.answer.appendBody(nil), j.prompt
		}
	}
	return struct {
		ID          string       `json:"id"`
		Object      string       `json:"object"`
		Created     int64        `json:"created"`
		Model       string       `json:"model"`
		Choices     []chatChoice `json:"choices"`
		Tier        *string      `json:"service_tier"`
		Fingerprint string       `json:"system_fingerprint"`
		Usage       usage        `json:"usage"`
		Logprobs    *string      `json:"prompt_logprobs"`
		TokenIDs    tokens       `json:"prompt_token_ids"`
		KVTransfer  *string      `json:"kv_transfer_params"`
	}{
		ID: a.id, Object: "chat.completion", Created: a.created, Model: a.model, Choices: choices, Fingerprint: fingerprint,
		Usage: usageOf(a.jobs, len(a.jobs)), TokenIDs: ids,
	}
}

func callsOf(j *job) (list []chatCall) {
	for _, k := range j.answer.Calls {
		list = append(list, chatCall{ID: k.ID, Type: "function", Function: chatFunction{k.Name, k.Arguments}})
	}
	return list
}

// head is what every chunk begins with.
func head(id, object string, created int64, model string) string {
	return `{"id":` + encode(id) + `,"object":"` + object + `","created":` + strconv.FormatInt(created, 10) +
		`,"model":` + encode(model) + `,"choices":[`
}

func (a *chatReply) stream(st *stream) error {
	prefix := head(a.id, "chat.completion.chunk", a.created, a.model)
	err := st.follow(a.jobs, func(j *job) {
		if !j.greeted {
			ids := j.promptIDs(a.q.ReturnTokenIDs)
			j.greeted = true
			st.event("", prefix, `{"index":`, strconv.Itoa(j.index), `,"delta":{"role":"assistant","content":""},"logprobs":null,`+
				`"finish_reason":null}]`, a.running(j, 0), `,"prompt_token_ids":`, ids, `,"prompt_text":null}`)
		}
		a.delta(st, prefix, j)
	})
	if err != nil {
		return err
	}
	if a.q.includeUsage() {
		st.event("", prefix, `],"usage":`, encode(usageOf(a.jobs, len(a.jobs))), `,"system_fingerprint":"`+fingerprint+`"}`)
	}
	st.event("", "[DONE]")
	return st.flush()
}

func (a *chatReply) delta(st *stream, prefix string, j *job) {
	delta, finish := "", `"finish_reason":null`
	if j.done {
		finish = `"finish_reason":"` + j.finish + `","stop_reason":null`
	}
	if calls := callsOf(j); len(calls) > 0 {
		if !j.done {
			return
		}
		delta = `"tool_calls":[{"index":0,` + encode(calls[0])[1:] + `]`
	} else if delta = j.fresh(); delta != "" || !j.done {
		if delta == "" {
			return
		}
		delta = `"content":` + encode(delta)
	}
	st.event("", prefix, `{"index":`, strconv.Itoa(j.index), `,"delta":{`, delta, `},"logprobs":null,`, finish, `,"token_ids":`,
		j.freshIDs(a.q.ReturnTokenIDs), `}]`, a.running(j, j.produced), `}`)
}

// running is the usage so far, in streams that want it with every chunk.
func (a *chatReply) running(j *job, produced int) string {
	if !a.q.continuousUsage() {
		return ""
	}
	return `,"usage":` + encode(usage{
		PromptTokens: len(j.prompt), CompletionTokens: produced, TotalTokens: len(j.prompt) + produced,
	})
}
