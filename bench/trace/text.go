package trace

import "kvca/state/ring"

// text is a prompt as it is written, piece by piece. What it is called depends on every piece up to there.
type text struct {
	name   uint64 // of all that has been written; before that, of where it begins
	tokens int
	names  []uint64 // of the complete units
	marks  []Mark
}

// write appends the first tokens of a content, which has as many as anyone asks for.
func (t *text) write(content uint64, tokens int) {
	for at := 0; at < tokens; {
		n := min(tokens-at, UnitTokens-t.tokens%UnitTokens)
		t.name = mix(t.name, content, uint64(at), uint64(n))
		at += n
		t.tokens += n
		if t.tokens%UnitTokens == 0 {
			t.names = append(t.names, t.name)
		}
	}
}

// message appends a piece and marks its end.
func (t *text) message(content uint64, tokens int) {
	t.write(content, tokens)
	t.marks = append(t.marks, Mark{Name: t.name, Tokens: t.tokens})
}

// request asks for an answer to what has been written.
func (t *text) request(outputTokens int) Request {
	n, m := len(t.names), len(t.marks)
	return Request{
		After: -1, PromptTokens: t.tokens, OutputTokens: outputTokens,
		Names: t.names[:n:n], Marks: t.marks[:m:m],
	}
}

// mix makes one name of several, in that order.
func mix(name uint64, more ...uint64) uint64 {
	for _, m := range more {
		name = ring.Mix(name ^ ring.Mix(m))
	}
	return name
}
