package cbr

import "bytes"

// prompt reads the value of the member that holds the endpoint's prompt. What
// cannot be one is encoded as part of the configuration: it is the engine's to
// judge.
func (e *Encoder) prompt() bool {
	e.followUp = false
	e.beginEnds()
	switch first := e.peek(); {
	case endpoints[e.endpoint].text:
		return e.completionPrompt()
	case first == '[':
		e.out = append(e.out, tagPrompt)
		return e.elements((*Encoder).markedMessage)
	case first == '"' && e.endpoint == Responses:
		return e.userItem()
	}
	return e.fixedValue()
}

// userItem reads a string that stands for one item of the user.
func (e *Encoder) userItem() bool {
	e.out = append(e.out, tagPrompt, tagObject)
	e.out = append(e.out, "role"...)
	e.out = append(e.out, tagString)
	e.out = append(e.out, "user"...)
	e.out = append(e.out, tagEnd)
	e.out = append(e.out, "content"...)
	if !e.content() {
		return false
	}
	e.out = append(e.out, tagEnd)
	e.addEnd()
	return true
}

// completionPrompt reads a text, a list of token IDs, or a list of either. A list
// of one prompt is that prompt.
func (e *Encoder) completionPrompt() bool {
	switch e.peek() {
	case '"':
		e.out = append(e.out, tagPrompt)
		return e.string()
	case '[':
		e.out = append(e.out, tagPrompt)
		if e.startsWithNumber() {
			return e.list((*Encoder).fixedValue)
		}
		return e.elements((*Encoder).listedPrompt)
	}
	return e.fixedValue()
}

// startsWithNumber reports whether the array at hand is one prompt of token IDs,
// rather than a list of prompts.
func (e *Encoder) startsWithNumber() bool {
	rest := bytes.TrimLeft(e.body[e.pos+1:], " \t\r\n")
	return len(rest) > 0 && (rest[0] == '-' || rest[0]-'0' <= 9)
}

func (e *Encoder) listedPrompt() bool {
	if e.peek() == '[' {
		return e.list((*Encoder).fixedValue)
	}
	return e.value()
}
