package trace

import (
	"time"

	"kvca/state/ring"
)

// LadderOptions is a ladder's rung: the same prompts at a given rate. inference-perf calls it shared_prefix.
type LadderOptions struct {
	Name string
	Seed uint64

	// Rate is of requests a second, Poisson, for Duration.
	Rate     float64
	Duration time.Duration

	// Groups is the number of shared prefixes; what all of them hold, next to the fleet's caches, is what the rung is about.
	Groups       int
	PrefixTokens int

	// Questions is how many prompts a group has. They come round in one shuffled order, so that a question repeats too, each as often
	// as any. At 0 every question is new and the group is drawn: then only prefixes can hit.
	Questions      int
	QuestionTokens int

	OutputTokens int
}

// Two cases that llm-d publishes figures of (llm-d-kv-cache, benchmarking/37-capacity and 73-capacity), named for the share of the
// fleet's caches that they reckon it takes. Rate and Duration are the caller's: there, 3 to 60 requests a second for 20 to 120 s.
var (
	// Ladder37 was run on four engines of the 70B profile: the prefixes, 83 * 8,000 of 4 * 461,376 tokens, are 36 %; with the questions
	// it is 49.
	Ladder37 = LadderOptions{
		Name: "ladder-37", Groups: 83, PrefixTokens: 8000, Questions: 3, QuestionTokens: 1000, OutputTokens: 1000,
	}
	// Ladder73 was run on eight engines of the 32B profile: 150 * (6,000 + 5*1,200) of 8 * 307,328 tokens are 73 %.
	Ladder73 = LadderOptions{
		Name: "ladder-73", Groups: 150, PrefixTokens: 6000, Questions: 5, QuestionTokens: 1200, OutputTokens: 1000,
	}
)

// What a generated content is, so that no two kinds share one.
var (
	systemKind   = ring.Key("trace: system prompt")
	questionKind = ring.Key("trace: question")
	answerKind   = ring.Key("trace: answer")
	hotKind      = ring.Key("trace: hot prefix")
)

// Ladder has each request in a session of its own.
func Ladder(o LadderOptions) *Trace {
	order := seeded(o.Seed, 1).Perm(max(o.Groups, 1) * max(o.Questions, 1))
	groups := seeded(o.Seed, 2)
	t := &Trace{Name: o.Name}
	for i, at := range seeded(o.Seed, 0).arrivals(o.Rate, o.Duration) {
		prompt, question := order[i%len(order)], uint64(0)
		if o.Questions == 0 {
			prompt, question = groups.IntN(len(order)), uint64(i)+1
		}
		t.Sessions = append(t.Sessions, Session{Start: at, Requests: []Request{o.request(uint64(prompt), question)}})
	}
	return t
}

// request is the prompt of that number; question sets apart those of one number.
func (o LadderOptions) request(prompt, question uint64) Request {
	var p text
	group := prompt % uint64(max(o.Groups, 1))
	p.message(mix(systemKind, group), o.PrefixTokens)
	p.message(mix(questionKind, o.Seed, prompt, question), o.QuestionTokens)
	return p.request(o.OutputTokens)
}
