package cbr

import "bytes"

// message reads one message, or one item of a responses input. Nothing in its
// encoding depends on what comes before or after it.
func (e *Encoder) message() bool {
	if e.peek() != '{' {
		return e.value()
	}
	e.out = append(e.out, tagObject)
	e.toolResult = false
	f, more, ok := e.open(e.messageShape())
	for more {
		at := len(e.members)
		if !e.beginMember() || !e.messageValue(at) {
			return false
		}
		e.add(&f, at)
		more, ok = e.next('}')
	}
	e.settle(&f)
	e.judge(&f)
	e.members = e.members[:f.base]
	e.out = append(e.out, tagEnd)
	return ok
}

func (e *Encoder) messageShape() shape {
	if e.endpoint == Responses {
		return item
	}
	return message
}

func (e *Encoder) messageValue(at int) bool {
	if string(e.keyOf(e.members[at])) == "content" {
		return e.content()
	}
	return e.fixedValue()
}

// judge notes what a settled message says about the request's phase.
func (e *Encoder) judge(f *fixed) {
	switch string(textOf(e.find(f, "role"))) {
	case "assistant", "tool", "function":
		e.followUp = true
	}
	switch e.endpoint {
	case Messages:
		e.followUp = e.followUp || e.toolResult
	case Responses:
		e.followUp = e.followUp || continues(textOf(e.find(f, "type")))
	}
}

// continues reports whether a responses item of that type can only come after an
// answer: a call, what a call has put out, or a reasoning.
func continues(itemType []byte) bool {
	return string(itemType) == "reasoning" ||
		bytes.HasSuffix(itemType, []byte("_call")) || bytes.HasSuffix(itemType, []byte("_output"))
}

// content reads a message's content. A string is a list of one text.
func (e *Encoder) content() bool {
	e.toolResult = false
	switch e.peek() {
	case '[':
		return e.list((*Encoder).part)
	case '"':
		e.out = append(e.out, tagArray)
		if !e.string() {
			return false
		}
		e.out = append(e.out, tagEnd)
		return true
	}
	return e.fixedValue()
}

// part reads one part of a content list. One that has a text and nothing else is
// encoded as that text.
func (e *Encoder) part() bool {
	if e.peek() != '{' {
		return e.value()
	}
	start := len(e.out)
	e.out = append(e.out, tagObject)
	f, more, ok := e.open(part)
	for more {
		at := len(e.members)
		if !e.beginMember() || !e.fixedValue() {
			return false
		}
		e.add(&f, at)
		more, ok = e.next('}')
	}
	e.settle(&f)
	e.toolResult = e.toolResult || isText(e.find(&f, "type"), "tool_result")
	if text, pure := e.pureText(&f); pure {
		e.out = append(append(e.out[:start], tagString), text...)
	}
	e.members = e.members[:f.base]
	e.out = append(e.out, tagEnd)
	return ok
}

// pureText is the text of a settled part that has nothing else.
func (e *Encoder) pureText(f *fixed) (text []byte, pure bool) {
	if len(e.members)-f.base != 2 || !e.isTextType(textOf(e.find(f, "type"))) {
		return nil, false
	}
	value := e.find(f, "text")
	return textOf(value), len(value) > 0 && value[0] == tagString
}

// isTextType reports whether parts of that type are the endpoint's texts. Those
// of responses have a type for each side of the conversation, which their item's
// role says already.
func (e *Encoder) isTextType(partType []byte) bool {
	switch string(partType) {
	case "text":
		return true
	case "input_text", "output_text":
		return e.endpoint == Responses
	}
	return false
}
