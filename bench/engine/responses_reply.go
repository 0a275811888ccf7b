package engine

import "strconv"

// responsesReply is an answer in the shape of responses.
type responsesReply struct {
	c        *call
	id, item string
	created  int64
	model    string
	q        *responsesRequest
	turns    []message
	job      *job
	sequence int
}

type responseObject struct {
	ID                string         `json:"id"`
	Object            string         `json:"object"`
	CreatedAt         int64          `json:"created_at"`
	Status            string         `json:"status"`
	Error             *string        `json:"error"`
	IncompleteDetails *incomplete    `json:"incomplete_details"`
	Instructions      *string        `json:"instructions"`
	Model             string         `json:"model"`
	Output            []any          `json:"output"`
	ParallelToolCalls bool           `json:"parallel_tool_calls"`
	Previous          *string        `json:"previous_response_id"`
	ToolChoice        string         `json:"tool_choice"`
	Tools             []any          `json:"tools"`
	Usage             *responseUsage `json:"usage"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	InputTokens        int           `json:"input_tokens"`
	InputTokensDetails cachedDetails `json:"input_tokens_details"`
	OutputTokens       int           `json:"output_tokens"`
	OutputDetails      outputDetails `json:"output_tokens_details"`
	TotalTokens        int           `json:"total_tokens"`
}

type cachedDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type outputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

type responseItem struct {
	ID        string         `json:"id"`
	Type      string         `json:"type"`
	Status    string         `json:"status"`
	Role      string         `json:"role,omitempty"`
	Content   []responsePart `json:"content,omitzero"` // of a message: empty before its text
	CallID    string         `json:"call_id,omitempty"`
	Name      string         `json:"name,omitempty"`
	Arguments string         `json:"arguments,omitempty"`
}

type responsePart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
}

func (a *responsesReply) object(status string) responseObject {
	o := responseObject{
		ID: a.id, Object: "response", CreatedAt: a.created, Status: status, Model: a.model, Output: []any{}, ParallelToolCalls: true,
		Previous: a.q.Previous, ToolChoice: "auto", Tools: []any{},
	}
	if status == "in_progress" {
		return o
	}
	if a.job.finish == "length" {
		o.Status, o.IncompleteDetails = "incomplete", &incomplete{"max_output_tokens"}
	}
	o.Output = append(o.Output, a.output("completed"))
	n, m := len(a.job.prompt), a.job.produced
	o.Usage = &responseUsage{
		InputTokens: n, InputTokensDetails: cachedDetails{a.job.cached}, OutputTokens: m, TotalTokens: n + m,
	}
	return o
}

func (a *responsesReply) output(status string) responseItem {
	for _, k := range a.job.answer.Calls {
		return responseItem{ID: a.item, Type: "function_call", Status: status, CallID: k.ID, Name: k.Name, Arguments: k.Arguments}
	}
	it := responseItem{ID: a.item, Type: "message", Status: status, Role: "assistant", Content: []responsePart{}}
	if status == "completed" {
		it.Content = []responsePart{a.part(a.job.text)}
	}
	return it
}

func (a *responsesReply) part(text string) responsePart {
	return responsePart{Type: "output_text", Text: text, Annotations: []any{}}
}

// keep remembers the finished response for previous_response_id, unless the client does not want that.
func (a *responsesReply) keep() responseObject {
	o := a.object("completed")
	if a.q.Store == nil || *a.q.Store {
		a.c.s.responses.put(a.id, stored{object: o, turns: append(a.turns[:len(a.turns):len(a.turns)], a.job.answer)})
	}
	return o
}

// event queues an event; every one has its name in it and a number.
func (a *responsesReply) event(st *stream, name string, members ...string) {
	parts := append([]string{`{"type":"`, name, `","sequence_number":`, strconv.Itoa(a.sequence)}, members...)
	st.event(name, append(parts, "}")...)
	a.sequence++
}

// stream tells the request's acceptance before anything has been computed, as vLLM does.
func (a *responsesReply) stream(st *stream) error {
	opening := encode(a.object("in_progress"))
	a.event(st, "response.created", `,"response":`, opening)
	a.event(st, "response.in_progress", `,"response":`, opening)
	if !a.c.s.cfg.HeadersWithFirstToken {
		if err := st.flush(); err != nil {
			return err
		}
	}
	begun := false
	return st.follow([]*job{a.job}, func(j *job) {
		if !begun {
			begun = true
			a.begin(st)
		}
		if text := j.fresh(); text != "" {
			a.event(st, "response.output_text.delta", a.place(), `,"content_index":0,"logprobs":[],"delta":`, encode(text))
		}
		if j.done {
			a.finish(st)
		}
	})
}

func (a *responsesReply) place() string { return `,"item_id":` + encode(a.item) + `,"output_index":0` }

func (a *responsesReply) begin(st *stream) {
	a.event(st, "response.output_item.added", `,"output_index":0,"item":`, encode(a.output("in_progress")))
	if a.job.answer.Calls == nil {
		a.event(st, "response.content_part.added", a.place(), `,"content_index":0,"part":`, encode(a.part("")))
	}
}

func (a *responsesReply) finish(st *stream) {
	for _, k := range a.job.answer.Calls {
		a.event(st, "response.function_call_arguments.delta", a.place(), `,"delta":`, encode(k.Arguments))
		a.event(st, "response.function_call_arguments.done", a.place(), `,"arguments":`, encode(k.Arguments))
	}
	if a.job.answer.Calls == nil {
		a.event(st, "response.output_text.done", a.place(), `,"content_index":0,"logprobs":[],"text":`, encode(a.job.text))
		a.event(st, "response.content_part.done", a.place(), `,"content_index":0,"part":`, encode(a.part(a.job.text)))
	}
	a.event(st, "response.output_item.done", `,"output_index":0,"item":`, encode(a.output("completed")))
	o := a.keep()
	a.event(st, "response."+o.Status, `,"response":`, encode(o))
}
