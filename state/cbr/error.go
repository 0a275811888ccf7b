package cbr

import "fmt"

// Codes of an Error. They are part of the gateway's interface: clients branch on
// them, so they never change.
const (
	CodeInvalidJSON  = "invalid_json"  // the body is not one strict JSON text
	CodeNotAnObject  = "not_an_object" // the body is JSON, but no object
	CodeInvalidUTF8  = "invalid_utf8"  // a string holds bytes that are no UTF-8
	CodeTooDeep      = "too_deep"      // arrays and objects nest deeper than MaxDepth
	CodeTooLarge     = "too_large"     // the body is longer than MaxBody
	CodeMissingModel = "missing_model" // no model, or one that is no string or empty
)

// Error says why a request cannot be read. All of them are the client's fault
// and meant for its eyes: a 400, or a 413 for CodeTooLarge.
type Error struct {
	Code    string // one of the codes above
	Message string // what was expected, what came, what to do
	Param   string // the top-level member at fault, "" where it is the body
	Offset  int64  // of the body's first byte at fault, from 0
}

// Error is the message.
func (err *Error) Error() string { return err.Message }

// fail notes the first fault, which ends the reading of the body, and returns
// false, for the parsing methods to hand up.
func (e *Encoder) fail(code string, at int, format string, args ...any) bool {
	e.err = &Error{Code: code, Message: fmt.Sprintf(format, args...), Offset: int64(at)}
	return false
}

// unexpected notes that something else than want stands where reading stopped.
func (e *Encoder) unexpected(want string) bool {
	return e.invalid(e.pos, want)
}

func (e *Encoder) invalid(at int, want string) bool {
	return e.fail(CodeInvalidJSON, at, "the request body is not valid JSON: byte %d should be %s, but is %s; send one JSON object in UTF-8", at, want, e.found(at))
}

// found describes the byte at an offset, for a message.
func (e *Encoder) found(at int) string {
	if at >= len(e.body) {
		return "the end of the body"
	}
	if c := e.body[at]; c > ' ' && c < 0x7F {
		return fmt.Sprintf("%q", rune(c))
	}
	return fmt.Sprintf("the byte 0x%02X", e.body[at])
}
