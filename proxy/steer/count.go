package steer

// Count is how many members of a body's object have one of the names: with escapes
// decoded and without regard to case, since parsers differ in which of several counts.
// It is 0 for a body that is no object for any parser. The error is an *Error, as that
// of Apply.
func Count(body []byte, names ...string) (int, error) {
	r := Rules{Strip: names}
	e := edit{scanner: scanner{body: body}}
	e.space()
	if e.pos == len(body) || body[e.pos] != '{' {
		if another(body) {
			e.fail(CodeInvalidJSON, "UTF-8 without a byte order mark")
			return 0, e.fault
		}
		return 0, nil
	}
	n := 0
	e.byte('{', "an object")
	for more := e.class() != closer; more; {
		v, ok := e.member(&r)
		if !ok {
			return 0, e.fault
		}
		if v.drop {
			n++
		}
		e.space()
		if more = e.class() == comma; more {
			e.byte(',', "a comma")
		}
	}
	if !e.byte('}', "a comma or the } that ends the object") {
		return 0, e.fault
	}
	return n, nil
}
