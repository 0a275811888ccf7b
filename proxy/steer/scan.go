package steer

import (
	"bytes"
	"fmt"
)

// MaxDepth is how deeply arrays and objects may nest, the body's own object
// included: as deeply as package cbr reads.
const MaxDepth = 256

// Codes of an Error, the same as those of package cbr.
const (
	CodeInvalidJSON = "invalid_json"
	CodeTooDeep     = "too_deep"
)

// Error says why a body can't be edited with certainty.
type Error struct {
	Code   string
	Offset int // in the body, in bytes
	Want   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the request body can't be read without doubt: expected %s at byte %d; send one JSON object in UTF-8", e.Want, e.Offset)
}

// What a byte is outside of strings.
const (
	bad = iota
	space
	comma
	colon
	scalar // of a number or a literal
	quote
	opener
	closer
)

var classes = func() (table [256]uint8) {
	for class, members := range map[uint8]string{
		space: " \t\r\n", comma: ",", colon: ":", quote: `"`, opener: "{[", closer: "}]",
		scalar: "0123456789+-.eE" + "true" + "false" + "null",
	} {
		for _, c := range []byte(members) {
			table[c] = class
		}
	}
	return table
}()

// scanner moves over a body. Its methods report whether they went on; if not,
// fault is set.
type scanner struct {
	body  []byte
	pos   int
	fault *Error
}

func (s *scanner) fail(code, want string) bool {
	s.fault = &Error{Code: code, Offset: s.pos, Want: want}
	return false
}

// class is what stands at the place of reading; bad is also the end.
func (s *scanner) class() uint8 {
	if s.pos < len(s.body) {
		return classes[s.body[s.pos]]
	}
	return bad
}

func (s *scanner) space() {
	for s.class() == space {
		s.pos++
	}
}

// byte moves past the byte that has to come, and the white space around it.
func (s *scanner) byte(c byte, want string) bool {
	s.space()
	if s.pos == len(s.body) || s.body[s.pos] != c {
		return s.fail(CodeInvalidJSON, want)
	}
	s.pos++
	s.space()
	return true
}

// string moves from the opening quote past the closing one: the first that no odd
// number of backslashes stands before.
func (s *scanner) string() bool {
	if s.class() != quote {
		return s.fail(CodeInvalidJSON, "a quote")
	}
	start := s.pos + 1
	for at := start; ; at++ {
		found := bytes.IndexByte(s.body[at:], '"')
		if found < 0 {
			return s.fail(CodeInvalidJSON, "a string that ends")
		}
		at += found
		slash := at
		for slash > start && s.body[slash-1] == '\\' {
			slash--
		}
		if (at-slash)%2 == 0 {
			s.pos = at + 1
			return true
		}
	}
}

// value moves past one value.
func (s *scanner) value() bool {
	switch s.class() {
	case quote:
		return s.string()
	case opener:
		return s.nested()
	case scalar:
		for s.class() == scalar {
			s.pos++
		}
		return true
	}
	return s.fail(CodeInvalidJSON, "a value")
}

// nested moves past an array or object with all that is in it. Of what stands
// between the strings only the brackets matter.
func (s *scanner) nested() bool {
	var objects [MaxDepth]bool
	for depth := 1; ; s.pos++ { // the body's own object is the first level
		for s.class()-space <= scalar-space {
			s.pos++
		}
		switch s.class() {
		case quote:
			if !s.string() {
				return false
			}
			s.pos--
		case opener:
			if depth == MaxDepth {
				return s.fail(CodeTooDeep, fmt.Sprintf("at most %d levels of arrays and objects", MaxDepth))
			}
			objects[depth] = s.body[s.pos] == '{'
			depth++
		case closer:
			depth--
			if objects[depth] != (s.body[s.pos] == '}') {
				return s.fail(CodeInvalidJSON, "the bracket that ends what was begun last")
			}
			if depth == 1 {
				s.pos++
				return true
			}
		default:
			return s.fail(CodeInvalidJSON, "JSON")
		}
	}
}

// another is whether a body that does not begin with a brace may be an object for a
// parser that looks for other encodings: UTF-8 with a byte order mark, UTF-16 or
// UTF-32.
func another(body []byte) bool {
	for _, c := range body {
		switch c {
		case '{':
			return true
		case 0, ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF, 0xFE, 0xFF: // of marks, and of white space in these
		default:
			return false
		}
	}
	return false
}
