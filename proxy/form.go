package proxy

import (
	"bytes"
	"mime"
	"strings"

	"kvca/router"
	"kvca/state/cbr"
)

const (
	maxPartHeader = 8 << 10 // of one part of a form; what exceeds it ends the reading
	// formShare is how many bytes of a form count as one byte of a prompt: a minute of
	// speech is a megabyte or two, and some 3,000 tokens.
	formShare = 128
)

// formBoundary is what parts the fields of a form, "" where the request is none.
func (x *exchange) formBoundary() string {
	kind, params, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return ""
	}
	return params["boundary"]
}

// isForm is whether the body is a form, where the endpoint takes any: elsewhere what
// calls itself one may be read as JSON, and is.
func (x *exchange) isForm() bool {
	return (x.endpoint.form || x.endpoint.foreign) && x.formBoundary() != ""
}

// identifyForm names a request by the field "model" of its form. The form passes as
// it is.
func (x *exchange) identifyForm(boundary string) error {
	spans := formFields(x.body, boundary, "model")
	switch {
	case len(spans) == 0:
		return x.identifyOnly()
	case len(spans) > 1:
		return badRequest("invalid_form", "The form has more than one field \"model\": send one.", "model")
	}
	name := string(x.body[spans[0][0]:spans[0][1]])
	model, _, err := x.resolveModel(name)
	if err != nil {
		return err
	}
	x.name = cbr.Request{Model: model, ClientModel: name, ModelSpan: spans[0]}
	x.members, _ = x.p.pool.Model(model)
	x.want = router.Request{Model: model}
	if x.endpoint.computes {
		x.want.Bytes = int64(len(x.body)) / formShare
	}
	if name != model {
		x.splice([]byte(model))
	}
	return nil
}

// formFields finds the values of the fields of a name in a multipart/form-data body:
// where they begin and end. The body is read once and nothing of it is copied; what
// is no well-formed form is read as far as it is.
func formFields(body []byte, boundary, name string) (values [][2]int) {
	delimiter := []byte("\r\n--" + boundary)
	at, last := afterDelimiter(body, delimiter, -len("\r\n"))
	if at < 0 { // what stands before the first part means nothing
		_, at, last = nextDelimiter(body, delimiter, 0)
	}
	for !last && at >= 0 {
		head, start := partHeader(body, at)
		if start < 0 {
			return values
		}
		var end int
		// The line break that ends the header may be the one that begins the delimiter.
		if end, at, last = nextDelimiter(body, delimiter, start-len("\r\n")); at < 0 {
			return values
		}
		if fieldName(head) == name {
			values = append(values, [2]int{start, max(start, end)})
		}
	}
	return values
}

// nextDelimiter finds the next delimiter from a place on: where it stands, where what
// follows it begins, and whether it is the last. A negative next says that there is
// none.
func nextDelimiter(body, delimiter []byte, from int) (at, next int, last bool) {
	for {
		i := bytes.Index(body[from:], delimiter)
		if i < 0 {
			return -1, -1, false
		}
		at = from + i
		if next, last = afterDelimiter(body, delimiter, at); next >= 0 {
			return at, next, last
		}
		from = at + 1
	}
}

// afterDelimiter is where what follows the delimiter at a place begins, negative
// where there is none: a longer text begins like it. The first one lacks the line
// break at its front, which then stands before the body, at -2.
func afterDelimiter(body, delimiter []byte, at int) (next int, last bool) {
	if at < 0 {
		delimiter, at = delimiter[-at:], 0
	}
	rest, ok := bytes.CutPrefix(body[at:], delimiter)
	if !ok {
		return -1, false
	}
	if bytes.HasPrefix(rest, []byte("--")) {
		return at + len(delimiter), true
	}
	padding := len(rest) - len(bytes.TrimLeft(rest, " \t"))
	if !bytes.HasPrefix(rest[padding:], []byte("\r\n")) {
		return -1, false
	}
	return at + len(delimiter) + padding + len("\r\n"), false
}

// partHeader is the header of the part that begins at a place, and where its value
// does, negative where it has none.
func partHeader(body []byte, at int) (head []byte, value int) {
	if bytes.HasPrefix(body[at:], []byte("\r\n")) {
		return nil, at + len("\r\n")
	}
	i := bytes.Index(body[at:min(len(body), at+maxPartHeader)], []byte("\r\n\r\n"))
	if i < 0 {
		return nil, -1
	}
	return body[at : at+i], at + i + len("\r\n\r\n")
}

// fieldName is the name of a part's field, "" where it has none.
func fieldName(head []byte) string {
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !strings.EqualFold(string(name), "Content-Disposition") {
			continue
		}
		if _, params, err := mime.ParseMediaType(string(bytes.TrimSpace(value))); err == nil {
			return params["name"]
		}
	}
	return ""
}
