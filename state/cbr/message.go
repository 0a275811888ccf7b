package cbr

import "bytes"

// message reads one message, or one item of a responses input. Nothing in its
// encoding depends on what comes before or after it.
func (e *Encoder) message() bool {
	if e.peek() != '{' {
		return e.value()
	}
	e.out = append(e.out, tagObject)
	e.plainContent, e.toolResult = false, false
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

// judge notes what a settled message says about the request's phase, and gives a
// plain text the type that its role implies.
func (e *Encoder) judge(f *fixed) {
	role := textOf(e.find(f, "role"))
	switch string(role) {
	case "assistant", "tool", "function":
		e.followUp = true
	}
	switch e.endpoint {
	case Messages:
		e.followUp = e.followUp || e.toolResult
	case Responses:
		e.followUp = e.followUp || continues(textOf(e.find(f, "type")))
		if content := e.find(f, "content"); e.plainContent && string(role) == "assistant" {
			content[1] = tagOutput
		}
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
	e.plainContent, e.toolResult = false, false
	switch e.peek() {
	case '[':
		return e.list((*Encoder).part)
	case '"':
		e.plainContent = true
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
	if tag, text := e.pureText(&f); tag != 0 {
		e.out = append(append(e.out[:start], tag), text...)
	}
	e.members = e.members[:f.base]
	e.out = append(e.out, tagEnd)
	return ok
}

// pureText is the tag and the text of a settled part that has nothing but a text,
// and a tag of 0 for any other.
func (e *Encoder) pureText(f *fixed) (tag byte, text []byte) {
	if len(e.members)-f.base != 2 {
		return 0, nil
	}
	value := e.find(f, "text")
	if len(value) == 0 || value[0] != tagString {
		return 0, nil
	}
	return e.textTag(textOf(e.find(f, "type"))), textOf(value)
}

// textTag is the tag of a text part of that type on the endpoint, 0 if it is none.
func (e *Encoder) textTag(partType []byte) byte {
	switch {
	case e.endpoint == Responses && string(partType) == "output_text":
		return tagOutput
	case e.endpoint == Responses && string(partType) == "input_text",
		e.endpoint != Responses && string(partType) == "text":
		return tagString
	}
	return 0
}
