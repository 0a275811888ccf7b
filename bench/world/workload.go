package world

import (
	"math/rand/v2"
	"time"

	"kvca/bench/load"
	"kvca/bench/trace"
)

// conversation is what one person is going to say, and when.
type conversation struct {
	start  time.Duration
	system string
	turns  []turn
	// way draws the nodes of the turns.
	way *rand.Rand
}

// turn is a question, after some time of thinking, and how long the answer to it is.
type turn struct {
	think        time.Duration
	question     string
	answerTokens int
}

// conversations writes the texts of a generated workload. A conversation ends before a prompt and its answer have more than most
// tokens together. Tokens come out a few more than in the trace, for the template frames the messages.
func conversations(o trace.TenantOptions, most int) []conversation {
	var list []conversation
	for i, s := range trace.Tenants(o).Sessions {
		system := s.Requests[0].Marks[0]
		c := conversation{start: s.Start, system: text(o.Seed, system.Name, system.Tokens), way: rand.New(rand.NewPCG(^o.Seed, uint64(i)))}
		for _, r := range s.Requests {
			if r.PromptTokens+r.OutputTokens > most {
				break
			}
			question := r.Marks[len(r.Marks)-1]
			size := question.Tokens - r.Marks[len(r.Marks)-2].Tokens
			c.turns = append(c.turns, turn{r.Think, text(o.Seed, question.Name, size), r.OutputTokens})
		}
		list = append(list, c)
	}
	return list
}

// text is the same for the same name.
func text(seed, name uint64, tokens int) string {
	return load.Text(rand.New(rand.NewPCG(seed, name)), tokens*trace.BytesPerToken)
}
