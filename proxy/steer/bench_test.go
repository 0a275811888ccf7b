package steer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// conversation is a chat of about n bytes: text with line ends and quotes in it.
func conversation(n int) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	paragraph := strings.Repeat("It was the best of times, it was the worst of times, it was the age of wisdom. ", 5) + "\nHe said: \"go\".\n"
	var messages []message
	for size := 0; size < n; size += 2000 {
		text := strings.Repeat(paragraph, min(4, (n-size)/len(paragraph)+1))
		messages = append(messages, message{[]string{"user", "assistant"}[len(messages)%2], text})
	}
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages, "stream": true, "temperature": 0.7, "max_tokens": 500, "user": "someone"})
	if err != nil {
		panic(err)
	}
	return body
}

func BenchmarkApply(b *testing.B) {
	for _, size := range []int{2 << 10, 32 << 10, 400 << 10} {
		body := conversation(size)
		with := append([]byte(`{"nvext":{"a":1},`), body[1:]...)
		for _, c := range []struct {
			name string
			body []byte
			r    Rules
		}{
			{"nothing to edit", body, Rules{Strip: DefaultFields()}},
			{"strip", with, Rules{Strip: DefaultFields()}},
			{"salt", body, Rules{Strip: DefaultFields(), Salt: "0123456789abcdef"}},
		} {
			b.Run(fmt.Sprintf("%s/%dkB", c.name, size>>10), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(c.body)))
				for b.Loop() {
					if _, _, err := c.r.Apply(c.body); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func TestABodyThatStaysAsItIsCostsNoMemory(t *testing.T) {
	body := conversation(32 << 10)
	r := &Rules{Strip: DefaultFields(), Refuse: DefaultFields()}
	if n := testing.AllocsPerRun(10, func() {
		if out, _, _ := r.Apply(body); &out[0] != &body[0] {
			t.Error("the body was copied")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
