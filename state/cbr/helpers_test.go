package cbr

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// cbrOf encodes a body that has to be readable.
func cbrOf(t testing.TB, ep Endpoint, body string) string {
	t.Helper()
	cbr, _ := encoded(t, ep, body, nil)
	return cbr
}

func encoded(t testing.TB, ep Endpoint, body string, rules *Rules) (string, Request) {
	t.Helper()
	var out bytes.Buffer
	resolve := func(model string) (string, *Rules, error) { return model, rules, nil }
	req, err := New().Encode(ep, []byte(body), resolve, &out)
	if err != nil {
		t.Fatalf("%s: %v\n%.300s", ep, err, body)
	}
	if req.Bytes != int64(out.Len()) {
		t.Fatalf("Bytes is %d, but %d were written", req.Bytes, out.Len())
	}
	return out.String(), req
}

// faultOf encodes a body that must not be readable.
func faultOf(t testing.TB, ep Endpoint, body string) *Error {
	t.Helper()
	var out bytes.Buffer
	_, err := New().Encode(ep, []byte(body), nil, &out)
	var fault *Error
	if !errors.As(err, &fault) {
		t.Fatalf("got %v, want an *Error\n%.300s", err, body)
	}
	if out.Len() > 0 {
		t.Fatalf("%d bytes were written before the fault", out.Len())
	}
	return fault
}

func wantSame(t *testing.T, ep Endpoint, a, b string) {
	t.Helper()
	if x, y := cbrOf(t, ep, a), cbrOf(t, ep, b); x != y {
		t.Errorf("%s: differ, but mean the same:\n%s\n%s\n%q\n%q", ep, a, b, x, y)
	}
}

func wantDifferent(t *testing.T, ep Endpoint, a, b string) {
	t.Helper()
	if x := cbrOf(t, ep, a); x == cbrOf(t, ep, b) {
		t.Errorf("%s: same, but do not mean the same:\n%s\n%s\n%q", ep, a, b, x)
	}
}

// chatWith is a chat with the given further top-level members.
func chatWith(members string) string {
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + members + `}`
}

// withMessages is a chat of the given messages.
func withMessages(messages string) string { return `{"model":"m","messages":[` + messages + `]}` }

// userSays is a message of the user with the given content.
func userSays(content string) string { return `{"role":"user","content":` + content + `}` }

// decode turns a CBR back into text in which nothing can be confused, and fails
// on bytes that follow no grammar. That it exists, and that it is the inverse of
// encoding, is what shows that two requests never share a CBR by their framing.
func decode(cbr []byte) (string, error) {
	if len(cbr) < 2 || cbr[0] != formatVersion {
		return "", errors.New("no header")
	}
	d := decoder{rest: cbr[2:]}
	fmt.Fprintf(&d.out, "%c", cbr[1])
	for len(d.rest) > 0 && d.rest[0] != tagPrompt {
		d.member()
	}
	if len(d.rest) > 0 {
		d.rest = d.rest[1:]
		d.out.WriteString(" prompt")
		for len(d.rest) > 0 && d.err == nil {
			d.value()
		}
	}
	return d.out.String(), d.err
}

type decoder struct {
	rest []byte
	out  bytes.Buffer
	err  error
}

func (d *decoder) text() string {
	n := 0
	for n < len(d.rest) && d.rest[n] < tagFirst {
		n++
	}
	text := string(d.rest[:n])
	d.rest = d.rest[n:]
	return text
}

func (d *decoder) member() {
	fmt.Fprintf(&d.out, " %q:", d.text())
	d.value()
}

func (d *decoder) end() {
	if len(d.rest) == 0 || d.rest[0] != tagEnd {
		d.err, d.rest = errors.New("an end is missing"), nil
		return
	}
	d.rest = d.rest[1:]
}

func (d *decoder) value() {
	if len(d.rest) == 0 {
		d.err = errors.New("a value is missing")
		return
	}
	tag := d.rest[0]
	d.rest = d.rest[1:]
	switch tag {
	case tagString, tagNumber:
		fmt.Fprintf(&d.out, " %X%q", tag&0xF, d.text())
		d.end()
	case tagTrue, tagFalse, tagNull:
		fmt.Fprintf(&d.out, " %X", tag&0xF)
	case tagArray:
		d.out.WriteString(" [")
		for len(d.rest) > 0 && d.rest[0] != tagEnd {
			d.value()
		}
		d.end()
		d.out.WriteString(" ]")
	case tagObject:
		d.out.WriteString(" {")
		for len(d.rest) > 0 && d.rest[0] != tagEnd {
			d.member()
		}
		d.end()
		d.out.WriteString(" }")
	default:
		d.err, d.rest = fmt.Errorf("0x%X opens no value", tag), nil
	}
}
