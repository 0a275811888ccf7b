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

// Stage is so many requests a second, for so long.
type Stage struct {
	Rate     float64
	Duration time.Duration
}

// stagePause is what passes between two stages: inference-perf's interval where none is configured.
const stagePause = time.Second

// The stages of the two cases, the first a warm-up that no figure is of.
var (
	Stages37 = stages(9, 30, 3, 210, 4, 180, 5, 120, 6, 120, 8, 90, 10, 70, 12, 60, 15, 50, 20, 50)
	Stages73 = stages(15, 50, 3, 20, 10, 20, 15, 20, 20, 38, 22, 34, 25, 30, 30, 25, 35, 21, 40, 38, 43, 36, 46, 33, 49, 30, 52, 29, 55, 27, 57, 26, 60, 25)
)

// stages are pairs of requests a second and seconds.
func stages(pairs ...float64) []Stage {
	var list []Stage
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, Stage{Rate: pairs[i], Duration: time.Duration(pairs[i+1]) * time.Second})
	}
	return list
}

// Climb is a whole ladder as inference-perf climbs it (inference_perf/loadgen/load_generator.py of September 2025, when the two cases
// were run). A stage sends Rate times Duration requests at times of its own choice, however many of them are under way, and the next
// begins when the last of them is over: so queues never run from one stage into the next, but caches do. Every stage asks the
// prompts anew from the first on, in one shuffled order.
//
// Its workers hold back at 100 requests each, and one runs on each core of its machine; what was published shows that it never came
// to that. Stages of 1,500 requests were sent at the rates that they were meant to have, while the first token took 57 s on average.
func Climb(o LadderOptions, stages []Stage) *Trace {
	order := seeded(o.Seed, 1).Perm(max(o.Groups, 1) * max(o.Questions, 1))
	t := &Trace{Name: o.Name, Pause: stagePause}
	for i, stage := range stages {
		if i > 0 {
			t.Stages = append(t.Stages, len(t.Sessions))
		}
		for k, at := range seeded(o.Seed, uint64(2+i)).filling(int(stage.Rate*stage.Duration.Seconds()), stage.Duration) {
			t.Sessions = append(t.Sessions, Session{Start: at, Requests: []Request{o.answered(uint64(order[k%len(order)]), uint64(len(t.Sessions)))}})
		}
	}
	return t
}

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

// answered is the prompt of that number with an answer that no other request has: engines cache it as they do prompts, though
// nobody asks for it again.
func (o LadderOptions) answered(prompt, number uint64) Request {
	r := o.request(prompt, 0)
	p := text{name: mix(r.Names[len(r.Names)-1], answerKind, o.Seed, number), tokens: r.PromptTokens}
	p.write(answerKind, r.OutputTokens)
	r.Answer = p.names
	return r
}

// request is the prompt of that number; question sets apart those of one number.
func (o LadderOptions) request(prompt, question uint64) Request {
	var p text
	group := prompt % uint64(max(o.Groups, 1))
	p.message(mix(systemKind, group), o.PrefixTokens)
	p.message(mix(questionKind, o.Seed, prompt, question), o.QuestionTokens)
	return p.request(o.OutputTokens)
}
