package cbr

// MaxDepth is how deeply arrays and objects may nest, the body's own object
// included.
const MaxDepth = 256

// peek is the byte at which reading stands, and 0, which starts no value, at the
// end of the body.
func (e *Encoder) peek() byte {
	if e.pos < len(e.body) {
		return e.body[e.pos]
	}
	return 0
}

// space moves past white space. Most bytes are none, so the loop is kept out of
// the way of inlining.
func (e *Encoder) space() {
	if e.pos < len(e.body) && e.body[e.pos] <= ' ' {
		e.skipSpace()
	}
}

func (e *Encoder) skipSpace() {
	for e.pos < len(e.body) {
		switch e.body[e.pos] {
		case ' ', '\n', '\r', '\t':
			e.pos++
		default:
			return
		}
	}
}

// value reads any value and appends it as the client wrote it, but for white
// space and the spelling of strings.
func (e *Encoder) value() bool {
	switch c := e.peek(); c {
	case '"':
		return e.string()
	case '{':
		return e.object()
	case '[':
		return e.array()
	case 't':
		return e.literal("true", tagTrue)
	case 'f':
		return e.literal("false", tagFalse)
	case 'n':
		return e.literal("null", tagNull)
	default:
		if c != '-' && c-'0' > 9 {
			return e.unexpected("a value")
		}
		return e.number()
	}
}

// fixedValue reads a value whose own number spelling is free. What is inside it
// counts as written.
func (e *Encoder) fixedValue() bool {
	if c := e.peek(); c == '-' || c-'0' <= 9 {
		return e.canonicalNumber()
	}
	return e.value()
}

// string reads a string and appends it framed.
func (e *Encoder) string() bool {
	e.out = append(e.out, tagString)
	if !e.text() {
		return false
	}
	e.out = append(e.out, tagEnd)
	return true
}

func (e *Encoder) literal(word string, tag byte) bool {
	end := e.pos + len(word)
	if end > len(e.body) || string(e.body[e.pos:end]) != word {
		return e.unexpected("a value: true, false, null, a number, a string, an array or an object")
	}
	e.pos = end
	e.out = append(e.out, tag)
	return true
}

// array reads an array whose elements count as written.
func (e *Encoder) array() bool {
	return e.list((*Encoder).value)
}

// list reads an array and appends it framed, each element by the given method.
func (e *Encoder) list(element func(*Encoder) bool) bool {
	e.out = append(e.out, tagArray)
	if !e.elements(element) {
		return false
	}
	e.out = append(e.out, tagEnd)
	return true
}

// elements reads an array and appends its elements without a frame around them.
func (e *Encoder) elements(element func(*Encoder) bool) bool {
	more, ok := e.enter(']')
	for more {
		if !element(e) {
			return false
		}
		more, ok = e.next(']')
	}
	return ok
}

// enter moves into the array or object at hand and reports whether it has a first
// element. ok is false after a fault.
func (e *Encoder) enter(closer byte) (more, ok bool) {
	if e.depth++; e.depth > MaxDepth {
		return false, e.fail(CodeTooDeep, e.pos, "the request body nests deeper than %d arrays and objects at byte %d; flatten it", MaxDepth, e.pos)
	}
	e.pos++
	e.space()
	if e.peek() == closer {
		e.leave()
		return false, true
	}
	return true, true
}

// next moves past the comma to the next element, or out of the array or object.
func (e *Encoder) next(closer byte) (more, ok bool) {
	e.space()
	switch e.peek() {
	case ',':
		e.pos++
		e.space()
		return true, true
	case closer:
		e.leave()
		return false, true
	}
	if closer == ']' {
		return false, e.unexpected("a comma or the ] that ends the array")
	}
	return false, e.unexpected("a comma or the } that ends the object")
}

func (e *Encoder) leave() {
	e.pos++
	e.depth--
}

// key reads a member's key and the colon, and appends the key's text.
func (e *Encoder) key() bool {
	if e.peek() != '"' {
		return e.unexpected("a member's key in quotes")
	}
	if !e.text() {
		return false
	}
	if e.peek() != ':' {
		if e.space(); e.peek() != ':' {
			return e.unexpected("a colon after a member's key")
		}
	}
	e.pos++
	e.space()
	return true
}
