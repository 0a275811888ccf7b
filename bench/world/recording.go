package world

import (
	"fmt"
	"io"
	"slices"
	"time"

	"kvca/bench/engine"
	"kvca/bench/trace"
	"kvca/state/cbr"
)

// recording is what was said in the world. Times are the engines'.
type recording struct {
	talks []talk
	took  time.Duration
}

// talk is one conversation.
type talk struct {
	start     time.Duration
	exchanges []exchange
}

// exchange is one turn.
type exchange struct {
	answer
	body  []byte
	think time.Duration
	// late is how long after its time the turn was sent.
	late time.Duration
}

func (r *recording) each(do func(e *exchange)) {
	for i := range r.talks {
		for j := range r.talks[i].exchanges {
			do(&r.talks[i].exchanges[j])
		}
	}
}

// tokens sums up what the answers say of their prompts.
func (r *recording) tokens() (prompt, cached int) {
	r.each(func(e *exchange) { prompt, cached = prompt+e.prompt, cached+e.cached })
	return prompt, cached
}

// ttft is the mean time to the first token.
func (r *recording) ttft() time.Duration {
	var sum time.Duration
	n := 0
	r.each(func(e *exchange) { sum, n = sum+e.first, n+1 })
	return sum / time.Duration(max(n, 1))
}

// late is how late turns were, ascending.
func (r *recording) late() []time.Duration {
	var all []time.Duration
	r.each(func(e *exchange) { all = append(all, e.late) })
	slices.Sort(all)
	return all
}

// trace is the same workload for the simulator.
func (r *recording) trace() (*trace.Trace, error) {
	t := &trace.Trace{Name: "world"}
	for i := range r.talks {
		s := trace.Session{Start: r.talks[i].start}
		for j := range r.talks[i].exchanges {
			q, err := r.talks[i].exchanges[j].request()
			if err != nil {
				return nil, fmt.Errorf("conversation %d, turn %d: %w", i, j, err)
			}
			q.After, q.FollowUp = j-1, j > 0
			s.Requests = append(s.Requests, q)
		}
		t.Sessions = append(t.Sessions, s)
	}
	return t, nil
}

func (e *exchange) request() (trace.Request, error) {
	p, err := engine.ChatPrompt(e.body)
	if err != nil {
		return trace.Request{}, err
	}
	if p.Tokens() != e.prompt {
		return trace.Request{}, fmt.Errorf("the prompt renders to %d tokens, the engine counted %d", p.Tokens(), e.prompt)
	}
	q := trace.Request{Think: e.think, PromptTokens: e.prompt, OutputTokens: e.output, Names: p.Blocks(trace.UnitTokens)}
	// The engine names an answer's blocks whether they are repeated or not.
	q.Answer = p.BlocksWith(e.text, trace.UnitTokens)[len(q.Names):]
	for _, end := range p.Ends {
		q.Marks = append(q.Marks, trace.Mark{Name: end.Name, Tokens: end.Tokens})
	}
	return q, nil
}

// bytesPerToken is how long a token is in CBR, as a gateway reads the bodies.
func (r *recording) bytesPerToken() (float64, error) {
	var enc cbr.Encoder
	var bytes, tokens int64
	var fault error
	r.each(func(e *exchange) {
		q, err := enc.Encode(cbr.Chat, e.body, nil, io.Discard)
		if err != nil && fault == nil {
			fault = fmt.Errorf("encode a body: %w", err)
		}
		bytes, tokens = bytes+q.Bytes, tokens+int64(e.prompt)
	})
	return float64(bytes) / float64(max(tokens, 1)), fault
}
