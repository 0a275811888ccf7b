package engine

import "strconv"

// job is one answer being generated: what was asked for, what will be said, and how far it has come.
type job struct {
	index  int
	prompt tokens
	answer message
	text   string // answer.Content
	lead   int    // bytes of the first token
	length int    // tokens of the answer
	finish string // OpenAI's word for why it ends
	req    Request

	// The rest is a copy of the ticket, made when the handler looks.
	produced, cached   int
	started, done, bad bool
	sent               int  // bytes of text already streamed
	told               int  // tokens whose ids have been
	greeted            bool // something has been streamed
	hideCached         bool // the usage does not say what was cached
}

// wish is what an endpoint decides about an answer.
type wish struct {
	model, salt string
	prompt      tokens
	prefix      string // for completions: the text whose last token the answer completes
	maxTokens   int    // 0: the model decides
	tool        *tool
	nocache     bool // embeddings and the like neither hit nor fill the cache
	anew        bool // what asks for the prompt's own probabilities only fills it
}

// newJob decides the whole answer before the first step: it depends on the prompt only, and the cache must know which blocks it
// will fill.
func (s *Server) newJob(index int, w wish) *job {
	unit, from := s.engineUnit, root(w.model, w.salt)
	chain := w.prompt.chain(from, unit)
	seed := mix(w.prompt.digest(from, chain, unit) ^ s.cfg.Seed ^ uint64(index)<<32)
	j := &job{
		index: index, prompt: w.prompt, lead: tokenBytes, finish: "stop", length: answerLength(seed),
		hideCached: s.cfg.Lacks.CachedTokens,
	}
	if w.maxTokens > 0 {
		j.length, j.finish = w.maxTokens, "length"
	}
	j.length = min(j.length, s.cfg.MaxModelLen-len(w.prompt))
	if part := len(w.prefix) % tokenBytes; part > 0 {
		j.lead = tokenBytes - part
	}
	j.compose(seed, w.tool)
	j.req = Request{PromptTokens: len(w.prompt), OutputTokens: j.length, Anew: w.anew}
	if !w.nocache {
		whole := continuation(j, w, unit)
		j.req.Blocks, j.req.OutputBlocks = chain, whole.chain(from, unit)[len(chain):]
		j.req.Ref = s.originOf(w, whole)
	}
	return j
}

// compose writes the answer: a call if a tool was demanded, text otherwise.
func (j *job) compose(seed uint64, t *tool) {
	j.answer.Role = "assistant"
	if t == nil {
		j.text = answerText(seed, j.length, j.lead)
		j.answer.Content = j.text
		return
	}
	j.answer.Calls = []toolCall{{ID: "call_" + strconv.FormatUint(seed, 16), Name: t.Name, Arguments: arguments(t.Schema, seed)}}
	j.length, j.finish = len(j.answer.appendBody(nil)), "tool_calls"
}

// originOf is what events say of a request's blocks. A name that is not the server's first is an adapter's, for the cache tells
// them apart.
func (s *Server) originOf(w wish, whole tokens) any {
	if s.announcer == nil {
		return nil
	}
	o := &origin{ids: whole, salt: w.salt}
	if w.model != s.cfg.Model {
		o.adapter = w.model
	}
	return o
}

// continuation is prompt and answer together, as a follow-up will spell them. Where a text's last, partial token ends a block, it
// stays as it is, for the block has its name by then.
func continuation(j *job, w wish, unit int) tokens {
	whole := make(tokens, 0, len(w.prompt)+j.length+1)
	if w.prefix != "" && len(w.prompt)%unit != 0 {
		whole = whole.appendText(w.prefix + j.text)
	} else {
		whole = j.answer.appendBody(append(whole, w.prompt...))
	}
	return whole
}

// fresh returns the text that has been generated and not yet sent.
func (j *job) fresh() string {
	end := len(j.text)
	if j.produced < j.length {
		end = max(0, min(end, j.lead+(j.produced-1)*tokenBytes))
	}
	if j.produced == 0 || end <= j.sent {
		return ""
	}
	text := j.text[j.sent:end]
	j.sent = end
	return text
}

// tool is a function that the client offers, whatever API it came by.
type tool struct {
	Name   string
	Schema []byte
}
