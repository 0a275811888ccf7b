package cbr

import (
	"io"
)

// MaxBody is the longest body that is read, in bytes. Memory is bounded by the
// body, so the bound on it is really the proxy's to set.
const MaxBody = 1 << 30

// What an Encoder keeps from one request to the next: enough for nearly all of
// them, so that one of 100 MB does not cost 100 MB from then on.
const (
	maxKeptBytes   = 4 << 20
	maxKeptMembers = 64 << 10
	maxKeptModel   = 1 << 10
)

// Encoder reads requests. It is made to be kept and used again, by one goroutine
// at a time; the zero value is ready.
type Encoder struct {
	body  []byte
	pos   int // in body, where reading stands
	depth int // of the arrays and objects around pos
	err   error

	// out holds what has been encoded, in the order of the body, and members where
	// in it the members of the objects around pos stand. The others are scratch for
	// bringing members into order.
	out     []byte
	members []member
	swap    []byte
	moved   []member
	runs    []run

	endpoint   Endpoint
	modelSpan  [2]int
	lastModel  string // of the request before, which often has the same
	cutsPrompt bool   // the engine cuts the prompt to leave room for the answer
	ends       ends   // of the last prompt read
	followUp   bool   // of the last prompt read
	toolResult bool   // the last content read has a tool's result
}

// Resolve turns the model's name as the client gave it into the one that backends
// know, and gives the rules for that model, nil for the built-in ones. Of an engine's
// own endpoint the name is "" where the body names none.
type Resolve = func(model string) (string, *Rules, error)

// New makes an Encoder.
func New() *Encoder { return new(Encoder) }

// Encode reads a request to an endpoint and writes its CBR to w, which is usually
// a chain.Hasher. resolve is called once the model is known and before anything
// else is judged; it may be nil.
//
// The error is an *Error where the body is at fault, and otherwise that of resolve
// or of w, as it is. Nothing has been written to w unless w has failed itself. The
// body is neither kept nor changed.
func (e *Encoder) Encode(ep Endpoint, body []byte, resolve Resolve, w io.Writer) (Request, error) {
	defer e.release()
	if !e.begin(ep, body) {
		return Request{}, e.err
	}
	f, ok := e.topLevel()
	if !ok {
		return Request{}, e.err
	}
	req := Request{Endpoint: e.endpoint, ModelSpan: e.modelSpan}
	rules, err := e.resolve(&req, &f, resolve)
	if err != nil {
		return req, err
	}
	e.describe(&req, &f)
	if e.endpoint != Other {
		req.Bytes, err = e.write(w, &req, &f, rules)
	}
	return req, err
}

// begin prepares for a body.
func (e *Encoder) begin(ep Endpoint, body []byte) bool {
	if int(ep) >= len(endpoints) {
		ep = Other
	}
	e.endpoint, e.body, e.pos, e.depth, e.err = ep, body, 0, 0, nil
	e.out, e.members = e.out[:0], e.members[:0]
	e.ends.count = 0
	e.modelSpan, e.cutsPrompt, e.followUp = [2]int{}, false, false
	if !e.fits(len(body)) {
		return false
	}
	if need := len(body) + 4*slack; cap(e.out) < need {
		e.out = make([]byte, 0, need)
	}
	return true
}

// fits reports whether a body of that many bytes is read. Offsets into what is
// encoded, which is at most twice the body, have 32 bits.
func (e *Encoder) fits(size int) bool {
	if size <= MaxBody {
		return true
	}
	return e.fail(CodeTooLarge, MaxBody, "the request body has %d bytes; send at most %d", size, MaxBody)
}

// release lets go of the body and of scratch that is larger than worth keeping.
func (e *Encoder) release() {
	e.body, e.err = nil, nil
	if cap(e.out) > maxKeptBytes {
		e.out = nil
	}
	if cap(e.swap) > maxKeptBytes {
		e.swap = nil
	}
	if max(cap(e.members), cap(e.runs), cap(e.moved)) > maxKeptMembers {
		e.members, e.runs, e.moved = nil, nil, nil
	}
	if len(e.lastModel) > maxKeptModel {
		e.lastModel = ""
	}
}

// topLevel reads the body and leaves the members of its object in order, each
// once, in the encoder's list.
func (e *Encoder) topLevel() (f fixed, ok bool) {
	e.space()
	if e.peek() != '{' {
		return f, e.noObject()
	}
	f, more, ok := e.open(topLevel)
	for more {
		at := len(e.members)
		if !e.beginMember() || !e.topLevelValue(e.keyOf(e.members[at])) {
			return f, false
		}
		e.add(&f, at)
		more, ok = e.next('}')
	}
	if !ok {
		return f, false
	}
	if e.space(); e.pos < len(e.body) {
		return f, e.unexpected("the end of the body")
	}
	e.settleTopLevel(&f)
	return f, true
}

// noObject notes that the body starts as no object does.
func (e *Encoder) noObject() bool {
	var what string
	switch c := e.peek(); {
	case c == '[':
		what = "an array"
	case c == '"':
		what = "a string"
	case c == '-' || c-'0' <= 9:
		what = "a number"
	case c == 't' || c == 'f' || c == 'n':
		what = "a literal"
	default:
		return e.unexpected("the { that starts an object")
	}
	return e.fail(CodeNotAnObject, e.pos, "the request body should be a JSON object, but starts as %s; send the request's fields in { }", what)
}

// topLevelValue reads the value of the member of that name.
func (e *Encoder) topLevelValue(name []byte) bool {
	switch {
	case string(name) == "model":
		start := e.pos
		ok := e.fixedValue()
		e.modelSpan = [2]int{start, e.pos}
		return ok
	case e.endpoint == Other:
		return e.fixedValue()
	case string(name) == endpoints[e.endpoint].prompt:
		return e.prompt()
	case e.endpoint == Messages && string(name) == "system":
		return e.content()
	}
	return e.fixedValue()
}

// settleTopLevel is settle without moving any bytes: they are written member by
// member anyway.
func (e *Encoder) settleTopLevel(f *fixed) {
	if f.settled {
		return
	}
	e.moved = e.moved[:0]
	for _, r := range e.counted(f) {
		e.moved = append(e.moved, e.members[r.last])
	}
	e.members = append(e.members[:f.base], e.moved...)
}

// resolve finds the model and its rules.
func (e *Encoder) resolve(req *Request, f *fixed, resolve Resolve) (*Rules, error) {
	name := textOf(e.find(f, "model"))
	if len(name) == 0 && (resolve == nil || !endpoints[e.endpoint].native) {
		return nil, e.missingModel(e.find(f, "model"))
	}
	if string(name) != e.lastModel {
		e.lastModel = string(name)
	}
	req.Model, req.ClientModel = e.lastModel, e.lastModel
	if resolve == nil {
		return nil, nil
	}
	model, rules, err := resolve(req.ClientModel)
	if err != nil {
		return nil, err
	}
	req.Model = model
	return rules, nil
}

func (e *Encoder) missingModel(value []byte) error {
	came := "is not a string"
	switch {
	case value == nil:
		came = "is missing"
	case value[0] == tagString:
		came = "is empty"
	}
	return &Error{
		Code: CodeMissingModel, Param: "model", Offset: int64(e.modelSpan[0]),
		Message: "model " + came + "; name the model as a string, one of those that GET /v1/models lists",
	}
}

// write writes the CBR and returns its length: what the encoding starts with, the
// configuration in order, and last the prompt.
func (e *Encoder) write(w io.Writer, req *Request, f *fixed, rules *Rules) (int64, error) {
	out := counter{w: w}
	e.swap = append(e.swap[:0], formatVersion, endpoints[e.endpoint].letter)
	out.write(e.swap)
	var prompt []byte
	for _, m := range e.members[f.base:] {
		name, value := e.keyOf(m), e.valueOf(m)
		switch {
		case value[0] == tagPrompt:
			prompt = value
		case string(name) == "model":
			e.swap = append(append(e.swap[:0], "model"...), tagString)
			e.swap = append(append(e.swap, req.Model...), tagEnd)
			out.write(e.swap)
		case !e.leftOut(rules, name, value):
			out.write(e.out[m.key:m.end])
		}
	}
	e.writePrompt(&out, prompt)
	return out.bytes, out.err
}

// leftOut reports whether a member stays out of the CBR. Two of the built-in list
// come in when they do change the prompt.
func (e *Encoder) leftOut(rules *Rules, name, value []byte) bool {
	rendered := false
	switch string(name) {
	case "max_tokens", "max_completion_tokens":
		rendered = e.cutsPrompt
	case "kv_transfer_params":
		rendered = isSet(field(value, "prompt_token_ids"))
	}
	if rendered {
		return rules.insists(name)
	}
	return rules.leavesOut(name) || endpoints[e.endpoint].out.has(name)
}

// counter writes until the first error and counts the bytes.
type counter struct {
	w     io.Writer
	bytes int64
	err   error
}

func (c *counter) write(p []byte) {
	if c.err != nil || len(p) == 0 {
		return
	}
	n, err := c.w.Write(p)
	c.bytes, c.err = c.bytes+int64(n), err
}
