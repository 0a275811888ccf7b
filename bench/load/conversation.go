package load

import (
	"math/rand/v2"

	"kvca/bench/fake"
)

// Script describes conversations.
type Script struct {
	Model                string
	Conversations, Turns int
	// SystemBytes is the length of the system prompt, 0 for none.
	SystemBytes int
	// Shared gives all conversations the same system prompt.
	Shared bool
	// UserBytes is the length of each question.
	UserBytes int
	Seed      uint64
}

// conversation is one of them: what was said so far. It belongs to one goroutine
// at a time.
type conversation struct {
	script   *Script
	id, turn int
	rand     *rand.Rand
	// way draws the gateways of the turns. What is said does not depend on it.
	way      *rand.Rand
	messages []string
}

func newConversation(s *Script, id int) *conversation {
	c := &conversation{
		script: s, id: id,
		rand: rand.New(rand.NewPCG(s.Seed, uint64(id))), way: rand.New(rand.NewPCG(^s.Seed, uint64(id))),
	}
	if s.SystemBytes > 0 {
		voice := c.rand
		if s.Shared {
			voice = rand.New(rand.NewPCG(s.Seed, 1<<40))
		}
		c.messages = append(c.messages, message("system", Text(voice, s.SystemBytes)))
	}
	return c
}

// ask is the body of the next turn: all that was said, and a new question.
func (c *conversation) ask() []byte {
	question := fake.Marker(c.id, c.turn) + " " + Text(c.rand, c.script.UserBytes)
	c.messages = append(c.messages, message("user", question))
	c.turn++
	return body(c.script.Model, false, c.messages)
}

// hear takes the answer to the last question into the conversation.
func (c *conversation) hear(answer string) {
	c.messages = append(c.messages, message("assistant", answer))
}

func (c *conversation) over() bool { return c.turn >= c.script.Turns }
