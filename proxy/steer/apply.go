package steer

import "encoding/json"

// Apply returns the body as the rules want it: body itself where they change
// nothing, else a new one. refused is the rule of a member for which the request
// is to be refused. The error is an *Error: what the rules do to this body would
// depend on who reads it, so it must not be sent.
func (r *Rules) Apply(body []byte) (out []byte, refused string, err error) {
	if r.idle() || len(body) == 0 {
		return body, "", nil
	}
	e := edit{scanner: scanner{body: body}}
	e.space()
	if e.pos == len(body) || body[e.pos] != '{' {
		if another(body) {
			e.fail(CodeInvalidJSON, "UTF-8 without a byte order mark")
			return nil, "", e.fault
		}
		return body, "", nil
	}
	if refused, ok := e.members(r); refused != "" || !ok {
		if !ok {
			return nil, "", e.fault
		}
		return body, refused, nil
	}
	return e.finish(r.Salt), "", nil
}

// edit is a body being read, and what has been kept of it.
type edit struct {
	scanner
	out  []byte // what is kept of body[:from]; nil before the first edit
	from int
	kept int // members
	last int // where the last kept member, or the opening brace, ends in body
	mark int // where it ends in out, once something was dropped behind it
	end  int // where the last member ends in body
}

// members reads the object and drops what the rules say.
func (e *edit) members(r *Rules) (refused string, ok bool) {
	e.byte('{', "an object")
	e.last, e.end = e.pos, e.pos
	for more := e.pos == len(e.body) || e.body[e.pos] != '}'; more; {
		start := e.pos
		v, ok := e.member(r)
		if !ok || v.refused != "" {
			return v.refused, ok
		}
		e.end = e.pos
		e.space()
		if more = e.class() == comma; more {
			e.byte(',', "a comma")
		}
		if v.drop {
			e.drop(start, more)
		} else {
			e.kept, e.last = e.kept+1, e.end
		}
	}
	if !e.byte('}', "a comma or the } that ends the object") {
		return "", false
	}
	if e.pos < len(e.body) {
		return "", e.fail(CodeInvalidJSON, "nothing after the object")
	}
	return "", true
}

// member moves past a key and its value.
func (e *edit) member(r *Rules) (verdict, bool) {
	start := e.pos
	if !e.string() {
		return verdict{}, false
	}
	v, ok := r.judge(e.body[start:e.pos])
	if !ok {
		return v, e.fail(CodeInvalidJSON, "a name that is a string")
	}
	return v, e.byte(':', "a colon") && e.value()
}

// drop leaves out the member that begins at start and has just been read, with
// the comma behind it, or, of the last one, the comma before it.
func (e *edit) drop(start int, more bool) {
	if e.out == nil {
		e.out = make([]byte, 0, len(e.body)+64)
	}
	if start > e.from { // the first, or one that follows a kept one
		e.out = append(e.out, e.body[e.from:start]...)
		e.mark = len(e.out) - (start - e.last)
	}
	e.from = e.pos
	if !more {
		e.from = e.end
		e.out = e.out[:e.mark]
	}
}

// finish makes the new body.
func (e *edit) finish(salt string) []byte {
	if e.out == nil && salt == "" {
		return e.body
	}
	quoted, _ := json.Marshal(salt) // a string: can't fail
	if e.out == nil {
		e.out = make([]byte, 0, len(e.body)+len(quoted)+len(saltField)+8)
	}
	out := append(e.out, e.body[e.from:e.end]...)
	if salt != "" {
		if e.kept > 0 {
			out = append(out, ',')
		}
		out = append(out, `"`+saltField+`":`...)
		out = append(out, quoted...)
	}
	return append(out, e.body[e.end:]...)
}
