package engine

import (
	"encoding/json"
	"strconv"
)

type completionRequest struct {
	sampling
	Prompt json.RawMessage `json:"prompt"`
}

// textOrIDs is one prompt, as text or as token ids.
type textOrIDs struct {
	text string
	ids  tokens
}

// prompts reads the four ways to give prompts: a text, a list of texts, a list of ids, a list of lists of ids.
func prompts(raw json.RawMessage, field string) ([]textOrIDs, error) {
	var list []json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, missing(field)
	case raw[0] == '[':
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, decodeError(err)
		}
	default:
		list = []json.RawMessage{raw}
	}
	if len(list) > 0 && list[0][0] != '"' && list[0][0] != '[' && raw[0] == '[' {
		list = []json.RawMessage{raw} // ids
	}
	out := make([]textOrIDs, 0, len(list))
	for _, one := range list {
		p, err := onePrompt(one, field)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	if len(out) == 0 || len(out) > maxChoices {
		return nil, badRequest(field, "from 1 to %d prompts, got %d. (parameter=%s)", maxChoices, len(out), field)
	}
	return out, nil
}

func onePrompt(raw json.RawMessage, field string) (p textOrIDs, err error) {
	if raw[0] == '"' {
		if err = json.Unmarshal(raw, &p.text); err != nil {
			return p, decodeError(err)
		}
		p.ids = tokens(nil).appendText(p.text)
	} else {
		var wide []int64
		if json.Unmarshal(raw, &wide) != nil {
			return p, invalid("string_type", field, "Input should be a valid string", "<value>")
		}
		for _, id := range wide {
			if id != int64(uint32(id)) {
				return p, badRequest("", "Token id %d is out of vocabulary", id)
			}
			p.ids = append(p.ids, uint32(id))
		}
	}
	if len(p.ids) == 0 {
		return p, badRequest(field, "The prompt must not be empty. (parameter=%s)", field)
	}
	return p, nil
}

func (c *call) completions() error {
	var q completionRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	q.ReturnTokenIDs = q.ReturnTokenIDs && !c.s.cfg.Lacks.TokenIDs
	jobs, model, err := c.completionJobs(&q)
	if err != nil {
		return err
	}
	reply := completionReply{id: c.id("cmpl-"), created: c.created(), model: model, q: &q, jobs: jobs}
	if q.Stream {
		return reply.stream(c.stream())
	}
	if err := c.complete(jobs); err != nil {
		return err
	}
	return c.answer(reply.whole())
}

// completionWishes is what the request asks for, a wish a prompt.
func (c *call) completionWishes(q *completionRequest) ([]wish, error) {
	list, err := prompts(q.Prompt, "prompt")
	if err != nil {
		return nil, err
	}
	w, err := c.wish(q.sampling)
	if err != nil {
		return nil, err
	}
	if len(list)*q.choices() > maxChoices {
		return nil, badRequest("n", "at most %d answers at once. (parameter=n)", maxChoices)
	}
	wishes := make([]wish, len(list))
	for i, p := range list {
		w.prompt, w.prefix = p.ids, p.text
		if err := c.checkLength(len(w.prompt), w.maxTokens); err != nil {
			return nil, err
		}
		wishes[i] = w
	}
	return wishes, nil
}

func (c *call) completionJobs(q *completionRequest) (jobs []*job, model string, err error) {
	wishes, err := c.completionWishes(q)
	if err != nil {
		return nil, "", err
	}
	for _, w := range wishes {
		for range q.choices() {
			jobs = append(jobs, c.s.newJob(len(jobs), w))
		}
	}
	return jobs, wishes[0].model, nil
}

// completionReply is an answer in the shape of completions.
type completionReply struct {
	id      string
	created int64
	model   string
	q       *completionRequest
	jobs    []*job
}

type completionChoice struct {
	Index        int       `json:"index"`
	Text         string    `json:"text"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
	StopReason   *string   `json:"stop_reason"`
	TokenIDs     tokens    `json:"token_ids"`
	Logprob      *string   `json:"prompt_logprobs"`
	PromptIDs    tokens    `json:"prompt_token_ids"`
}

func (a *completionReply) whole() any {
	choices := make([]completionChoice, len(a.jobs))
	for i, j := range a.jobs {
		choices[i] = completionChoice{Index: j.index, Text: j.text, FinishReason: j.finish}
		if a.q.ReturnTokenIDs {
			choices[i].TokenIDs, choices[i].PromptIDs = j.answer.appendBody(nil), j.prompt
		}
	}
	return struct {
		ID          string             `json:"id"`
		Object      string             `json:"object"`
		Created     int64              `json:"created"`
		Model       string             `json:"model"`
		Choices     []completionChoice `json:"choices"`
		Tier        *string            `json:"service_tier"`
		Fingerprint string             `json:"system_fingerprint"`
		Usage       usage              `json:"usage"`
		KVTransfer  *string            `json:"kv_transfer_params"`
	}{
		ID: a.id, Object: "text_completion", Created: a.created, Model: a.model, Choices: choices, Fingerprint: fingerprint,
		Usage: usageOf(a.jobs, a.q.choices()),
	}
}

func (a *completionReply) stream(st *stream) error {
	prefix := head(a.id, "text_completion", a.created, a.model)
	err := st.follow(a.jobs, func(j *job) {
		text, finish := j.fresh(), "null"
		if j.done {
			finish = `"` + j.finish + `"`
		} else if text == "" {
			return
		}
		running := ""
		if a.q.continuousUsage() {
			n := len(j.prompt)
			running = `,"usage":` + encode(usage{PromptTokens: n, CompletionTokens: j.produced, TotalTokens: n + j.produced})
		}
		st.event("", prefix, `{"index":`, strconv.Itoa(j.index), `,"text":`, encode(text), `,"logprobs":null,"finish_reason":`, finish,
			`,"stop_reason":null,"prompt_token_ids":`, j.promptIDs(a.q.ReturnTokenIDs), `,"token_ids":`,
			j.freshIDs(a.q.ReturnTokenIDs), `}]`, running, `}`)
		j.greeted = true
	})
	if err != nil {
		return err
	}
	if a.q.includeUsage() {
		st.event("", prefix, `],"usage":`, encode(usageOf(a.jobs, a.q.choices())), `,"system_fingerprint":"`+fingerprint+`"}`)
	}
	st.event("", "[DONE]")
	return st.flush()
}
