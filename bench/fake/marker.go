package fake

import (
	"bytes"
	"fmt"
)

var markerStart = []byte("[[conv=")

// Marker is the text by which a fake backend knows a turn of a conversation.
// Several may stand in one body, the last one counts.
func Marker(conversation, turn int) string {
	return fmt.Sprintf("%s%d turn=%d]]", markerStart, conversation, turn)
}

// mark is what the markers of a body say.
type mark struct {
	conversation, turn int
	// first is where the first marker starts: what is before it may be shared.
	first int
}

func findMark(body []byte) (mark, bool) {
	first := bytes.Index(body, markerStart)
	if first < 0 {
		return mark{}, false
	}
	last := first
	for {
		next := bytes.Index(body[last+1:], markerStart)
		if next < 0 {
			break
		}
		last += 1 + next
	}
	m := mark{first: first}
	rest := body[last+len(markerStart):]
	m.conversation, rest = digits(rest)
	rest, ok := bytes.CutPrefix(rest, []byte(" turn="))
	if !ok {
		return mark{}, false
	}
	m.turn, rest = digits(rest)
	return m, bytes.HasPrefix(rest, []byte("]]"))
}

// digits reads a decimal number of at most nine digits.
func digits(b []byte) (n int, rest []byte) {
	i := 0
	for i < len(b) && i < 9 && b[i] >= '0' && b[i] <= '9' {
		n = n*10 + int(b[i]-'0')
		i++
	}
	return n, b[i:]
}
