package engine

import "time"

// Kind says what an Event reports.
type Kind uint8

const (
	// FirstToken ends a request's prefill; it counts the first token.
	FirstToken Kind = iota + 1
	// Token reports Tokens more of them. Only after ReportTokens(true).
	Token
	// Done is the end of a request; the tokens not yet reported are in Tokens.
	Done
	// Rejected is the end of a request that can never fit in the cache.
	Rejected
)

// Event is something that happened to a request.
type Event struct {
	At           time.Duration // end of the step in which it happened
	ID           uint64
	Kind         Kind
	Tokens       int // sampled since the request's last event
	CachedTokens int // of the prompt, found in the cache
}

// Stats counts since New.
type Stats struct {
	PromptTokens  uint64 // of the requests admitted: also what vLLM counts as prefix cache queries
	CachedTokens  uint64 // of these, found in the cache
	OutputTokens  uint64
	Finished      uint64
	Cancelled     uint64
	Rejected      uint64
	Preemptions   uint64
	Steps         uint64
	ComputedBusy  time.Duration // the time in which a step was running
	PrefillTokens uint64        // prompt tokens computed, those of preempted requests again
}
