package load

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

var words = strings.Fields(`the of and a to in is that it was for on are with as at be this from have or by one had not but
what all were when we there can an your which their said if do will each about how up out them then she many some so these would
other into has more her two like him see time could no make than first been its who now people my made over did down only way find
use may water long little very after words called just where most know harbour morning window letter copper seldom beneath orchard`)

// Text is n bytes of words, the same for the same r, with a line break about
// every ninth word.
func Text(r *rand.Rand, n int) string {
	var b strings.Builder
	b.Grow(n + 16)
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		if r.IntN(9) == 0 {
			b.WriteString(".\n")
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()[:n]
}

// message is one element of messages.
func message(role, content string) string {
	return `{"role":"` + role + `","content":` + strconv.Quote(content) + `}`
}

func body(model string, stream bool, messages []string) []byte {
	head := `{"model":` + strconv.Quote(model) + `,"max_tokens":160,"temperature":0.7,`
	if stream {
		head += `"stream":true,"stream_options":{"include_usage":true},`
	}
	return []byte(head + `"messages":[` + strings.Join(messages, ",") + `]}`)
}

const (
	systemBytes = 1024
	turnBytes   = 4096
)

// Chat is the body of a chat of about n bytes: one question where it is short,
// else a conversation with turns of 4 kB.
func Chat(model string, n int, stream bool, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	if n < systemBytes+turnBytes {
		return body(model, stream, []string{message("user", Text(r, max(n-160, 1)))})
	}
	messages := []string{message("system", Text(r, systemBytes))}
	roles := [...]string{"user", "assistant"}
	turns := (n - systemBytes) / turnBytes
	turns -= 1 - turns%2 // the last one is the user's
	for i := range turns {
		messages = append(messages, message(roles[i%2], Text(r, (n-systemBytes)/turns-64)))
	}
	return body(model, stream, messages)
}
