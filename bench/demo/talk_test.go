package demo

import (
	"bytes"
	"encoding/json"
	"testing"
)

func small() Script {
	s := DefaultScript("sim", 7)
	s.SystemBytes, s.QuestionBytes, s.DocumentBytes = 100, Span{20, 40}, Span{200, 300}
	s.Turns, s.ThinkMillis = Span{3, 3}, Span{1, 3}
	return s
}

// hold is a whole conversation in which every question gets the same answer.
func hold(s Script, session, n int) [][]byte {
	t := newTalk(&s, session, n)
	var asked [][]byte
	for !t.over() {
		asked = append(asked, t.ask())
		t.pause()
		t.hear(&answer{text: "so \"be\" it\n", backend: "b"})
	}
	return asked
}

func TestSameSeedSaysTheSame(t *testing.T) {
	s := small()
	first, again := hold(s, 3, 1), hold(s, 3, 1)
	if len(first) != 3 {
		t.Fatalf("%d turns", len(first))
	}
	for i := range first {
		if !bytes.Equal(first[i], again[i]) {
			t.Errorf("turn %d differs", i)
		}
	}
	other := small()
	other.Seed++
	for name, asked := range map[string][][]byte{"session": hold(s, 4, 1), "number": hold(s, 3, 2), "seed": hold(other, 3, 1)} {
		if bytes.Equal(first[0], asked[0]) {
			t.Errorf("another %s says the same", name)
		}
	}
}

func TestFollowUpRepeatsAllBefore(t *testing.T) {
	asked := hold(small(), 0, 0)
	for i, body := range asked {
		var request struct {
			Model    string
			Stream   bool
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal(body, &request); err != nil {
			t.Fatal(err)
		}
		if n := 2 + 2*i; len(request.Messages) != n || request.Messages[n-1].Role != "user" || !request.Stream || request.Model != "sim" {
			t.Errorf("turn %d: %s", i, body)
		}
		if i > 0 && !bytes.HasPrefix(body, bytes.TrimSuffix(asked[i-1], []byte("]}"))) {
			t.Errorf("turn %d does not begin with the one before", i)
		}
		if i > 0 && request.Messages[2*i].Content != "so \"be\" it\n" {
			t.Errorf("turn %d has %q for the answer", i, request.Messages[2*i].Content)
		}
	}
}

func TestTenantsShareTheirSystemPrompt(t *testing.T) {
	s := small()
	s.Tenants = 2
	seen := make(map[string]bool)
	for session := range 50 {
		var request struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal(hold(s, session, 0)[0], &request); err != nil {
			t.Fatal(err)
		}
		seen[request.Messages[0].Content] = true
	}
	if len(seen) != 2 {
		t.Errorf("%d system prompts of 2 tenants", len(seen))
	}
}
