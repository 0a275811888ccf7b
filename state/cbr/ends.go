package cbr

// maxEnds is how many ends of messages are told to the writer: the last ones.
const maxEnds = 8

// Marker is what a writer of canonical bytes may also be: it is told where each
// of the last messages ends, right after that message's last byte was written.
// A follow-up repeats all messages of the request before it, so it meets that
// request's end at one of these.
type Marker interface{ Mark() }

// ends are where the last messages of the prompt end, counted from its start.
type ends struct {
	start int // of the prompt, in the encoder's out
	count int // of all messages
	last  [maxEnds]int
}

func (e *Encoder) beginEnds() { e.ends.start, e.ends.count = len(e.out), 0 }

func (e *Encoder) addEnd() {
	e.ends.last[e.ends.count%maxEnds] = len(e.out) - e.ends.start
	e.ends.count++
}

// markedMessage reads one message and notes where it ends.
func (e *Encoder) markedMessage() bool {
	if !e.message() {
		return false
	}
	e.addEnd()
	return true
}

// writePrompt writes the prompt, and tells a Marker where its messages end.
func (e *Encoder) writePrompt(out *counter, prompt []byte) {
	marker, ok := out.w.(Marker)
	if !ok {
		out.write(prompt)
		return
	}
	at := 0
	for i := max(e.ends.count-maxEnds, 0); i < e.ends.count; i++ {
		end := e.ends.last[i%maxEnds]
		out.write(prompt[at:end])
		at = end
		if out.err == nil {
			marker.Mark()
		}
	}
	out.write(prompt[at:])
}
