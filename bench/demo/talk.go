package demo

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"time"

	"kvca/bench/load"
)

// talk is one conversation: what was said so far. It belongs to one goroutine.
// What it draws does not depend on the answers, so it is the same conversation
// whatever gateway it is held with.
type talk struct {
	script      *Script
	rand        *rand.Rand
	turns, done int
	backend     string // who answered last, "" before the first answer
	messages    []byte // elements of a JSON list
}

// newTalk is the n-th conversation of a session.
func newTalk(s *Script, session, n int) *talk {
	r := s.random(session, n)
	t := &talk{script: s, rand: r, turns: s.Turns.draw(r)}
	t.say("system", s.system(r.IntN(max(s.Tenants, 1))))
	return t
}

// pause is how long the user takes before the next question.
func (t *talk) pause() time.Duration { return t.script.think(t.rand) }

// ask is the body of the next turn: all that was said, and a new question.
func (t *talk) ask() []byte {
	t.say("user", t.question())
	t.done++
	body := make([]byte, 0, len(t.messages)+128)
	body = append(body, `{"model":`...)
	body = append(body, strconv.Quote(t.script.Model)...)
	body = append(body, `,"stream":true,"stream_options":{"include_usage":true},"messages":[`...)
	return append(append(body, t.messages...), "]}"...)
}

func (t *talk) question() string {
	s := t.script
	n := s.QuestionBytes.draw(t.rand)
	if t.done == 0 && s.DocumentEvery > 0 && t.rand.IntN(s.DocumentEvery) == 0 {
		n += s.DocumentBytes.draw(t.rand)
	}
	return load.Text(t.rand, n)
}

// hear takes an answer into the conversation.
func (t *talk) hear(a *answer) {
	t.say("assistant", a.text)
	t.backend = a.backend
}

func (t *talk) over() bool { return t.done >= t.turns }

func (t *talk) say(role, content string) {
	if len(t.messages) > 0 {
		t.messages = append(t.messages, ',')
	}
	text, err := json.Marshal(content)
	if err != nil {
		panic("demo: " + err.Error()) // strings always have a JSON form
	}
	t.messages = append(t.messages, `{"role":"`+role+`","content":`...)
	t.messages = append(append(t.messages, text...), '}')
}
