package engine

import (
	"bytes"
	"encoding/json"
)

// message is one turn of a conversation, whatever API it came by.
type message struct {
	Role    string
	Content string
	Calls   []toolCall
}

type toolCall struct {
	ID, Name, Arguments string
}

// conversation is what the chat template sees.
type conversation struct {
	preamble string // tools and template arguments
	messages []message
}

// render is the chat template. Each piece is tokenized by itself, as special tokens force it in real templates; so appending
// messages leaves the earlier tokens alone, and an answer that comes back as an assistant message has the tokens it was
// generated with.
func (c conversation) render(forAnswer bool) tokens {
	n := len(c.preamble)/tokenBytes + 16
	for _, m := range c.messages {
		n += len(m.Content)/tokenBytes + 16
	}
	t := make(tokens, 0, n)
	if c.preamble != "" {
		t = t.appendText(c.preamble).appendText("<|end|>\n")
	}
	for _, m := range c.messages {
		t = t.appendText("<|" + m.Role + "|>\n")
		t = m.appendBody(t).appendText("<|end|>\n")
	}
	if forAnswer {
		t = t.appendText("<|assistant|>\n")
	}
	return t
}

// appendBody adds what the model itself writes in an assistant's turn. Ids of calls are not part of it: the server invents them.
func (m message) appendBody(t tokens) tokens {
	t = t.appendText(m.Content)
	for _, c := range m.Calls {
		t = t.appendText("<tool_call>" + c.Name + "\n" + c.Arguments + "</tool_call>")
	}
	return t
}

// preamble joins what precedes the messages in most templates; absent and null members vanish.
func preamble(members ...json.RawMessage) string {
	var b bytes.Buffer
	for _, m := range members {
		if len(m) == 0 || string(m) == "null" {
			continue
		}
		b.WriteString("<|config|>")
		b.WriteString(compact(m))
	}
	return b.String()
}

func compact(m json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, m) != nil {
		return string(m)
	}
	return b.String()
}
