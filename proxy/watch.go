package proxy

import "bytes"

// Bounds on what is kept of an answer while it passes: a line of a stream that is
// longer goes by unread, of an unstreamed answer only the end is kept.
const (
	maxLine = 256 << 10
	maxTail = 16 << 10
)

// watch reads along in an answer, without delaying or changing it: whether the
// engine reports an error inside it, whether it is complete, what the prompt cost,
// and under which id the engine keeps it.
type watch struct {
	style  style
	events bool // a stream of events, else one JSON value
	lines  bool // each line is an event, a JSON value
	native bool // usage stands under an engine's own names
	blind  bool // encoded: can't be read
	// keeps is told under which id the engine keeps the answer; nil for nobody.
	keeps func(id string)

	failed     bool   // an error event went by
	complete   bool   // the event that ends streams of this API went by
	responseID string // of the Responses API
	chunks     int64  // pieces of a stream so far, of about a token each

	carry    []byte // an event line whose end has not come yet
	overlong bool   // the line exceeds maxLine: skip to its end
	kept     []byte // what usage is read from
	seen     usage  // what was read already
	fed      bool
}

func newWatch(s style, events bool) *watch { return &watch{style: s, events: events} }

// feed takes the next bytes of the answer. They are not kept.
func (w *watch) feed(b []byte) {
	if w.blind {
		return
	}
	if w.style == responsesStyle && w.responseID == "" {
		if w.responseID = findResponseID(b); w.responseID != "" && w.keeps != nil {
			w.keeps(w.responseID)
		}
	}
	if !w.events {
		w.feedTail(b)
		return
	}
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			w.hold(b)
			return
		}
		w.endLine(b[:end])
		b = b[end+1:]
	}
}

// end takes the last line, which may lack its line feed.
func (w *watch) end() {
	if len(w.carry) > 0 && !w.overlong {
		w.line(w.carry)
	}
	w.carry = nil
}

func (w *watch) hold(b []byte) {
	if w.overlong = w.overlong || len(w.carry)+len(b) > maxLine; w.overlong {
		w.carry = nil
		return
	}
	w.carry = append(w.carry, b...)
}

func (w *watch) endLine(b []byte) {
	switch {
	case w.overlong:
		w.overlong = false
	case len(w.carry) > 0:
		if w.hold(b); !w.overlong {
			w.line(w.carry)
		}
		w.overlong = false
	default:
		w.line(b)
	}
	w.carry = w.carry[:0]
}

// line reads one line of a stream of events.
func (w *watch) line(b []byte) {
	if w.lines {
		w.data(bytes.TrimSpace(b))
	} else if data, ok := bytes.CutPrefix(b, []byte("data:")); ok {
		w.data(bytes.TrimSpace(data))
	} else if name, ok := bytes.CutPrefix(b, []byte("event:")); ok {
		w.event(string(bytes.TrimSpace(name)))
	}
}

func (w *watch) event(name string) {
	switch name {
	case "error":
		w.failed, w.complete = true, true
	case "response.failed":
		w.failed, w.complete = true, true
	case "message_stop", "response.completed", "response.incomplete":
		w.complete = true
	}
}

// Engines begin an error event's data in one of these ways; the answer's own
// chunks begin with their id, or with their type.
var errorPrefixes = [][]byte{
	[]byte(`{"error"`), []byte(`{"object":"error"`), []byte(`{"object": "error"`),
	[]byte(`{"type":"error"`), []byte(`{"type": "error"`),
}

func (w *watch) data(b []byte) {
	if string(b) == "[DONE]" {
		w.complete = true
		return
	}
	w.chunks++
	for _, prefix := range errorPrefixes {
		if bytes.HasPrefix(b, prefix) {
			w.failed = true
			return
		}
	}
	if w.native {
		w.complete = true // how their streams end differs, so that only an error tells
		if mentionsOwn(b) {
			w.kept = append(w.kept[:0], b...)
		}
		return
	}
	if !mentionsPrompt(b) {
		return
	}
	if w.style == openAIStyle {
		w.kept = append(w.kept[:0], b...) // the last one says most
		return
	}
	w.seen.merge(parseUsage(b))
}

// feedTail keeps the end of an unstreamed answer, where its usage stands.
func (w *watch) feedTail(b []byte) {
	if !w.fed {
		w.fed = true
		w.kept = make([]byte, 0, min(max(len(b), 512), maxTail))
	}
	if len(b) >= maxTail {
		w.kept = append(w.kept[:0], b[len(b)-maxTail:]...)
		return
	}
	if over := len(w.kept) + len(b) - maxTail; over > 0 {
		w.kept = append(w.kept[:0], w.kept[over:]...)
	}
	w.kept = append(w.kept, b...)
}

// findResponseID finds the id of a stored response in the beginning of an answer.
func findResponseID(b []byte) string {
	for _, key := range [][]byte{[]byte(`"id":"resp_`), []byte(`"id": "resp_`)} {
		at := bytes.Index(b, key)
		if at < 0 {
			continue
		}
		id := b[at+len(key)-len("resp_"):]
		if end := bytes.IndexByte(id, '"'); end > 0 && end <= 128 {
			return string(id[:end])
		}
	}
	return ""
}
