package trace

import (
	"math"
	"time"
)

const (
	// UnitTokens is how many tokens one name stands for.
	UnitTokens = 128
	// BytesPerToken is how long a token's text is, so that a unit is 512 bytes of a request's canonical bytes.
	BytesPerToken = 4
)

// Request is one call of a client. What it shares with others is in its names, which callers must not change: requests of a session
// may share the memory.
type Request struct {
	// After is the place in the session of the request whose answer this one waits for, always an earlier one. -1: the session's
	// start.
	After int
	// Think is how long from then until it is sent.
	Think time.Duration
	// PromptTokens and OutputTokens are at least 1.
	PromptTokens int
	OutputTokens int
	// Names are of the prompt's complete units, PromptTokens/UnitTokens of them. Names[i] names units 0 to i together.
	Names []uint64
	// Answer names the units that prompt and answer complete beyond Names, where a later request repeats them. Else it is nil.
	Answer []uint64
	// Marks are the ends of the prompt's messages, ascending; the last is the end of the prompt. Nil where the trace doesn't say.
	Marks []Mark
	// FollowUp tells that the request continues an earlier one, that is, has an answer in its prompt.
	FollowUp bool
}

// Mark names the first Tokens tokens of a prompt.
type Mark struct {
	Name   uint64
	Tokens int
}

// Session is requests that belong together: a conversation, an agent with its sub-agents, or one request.
type Session struct {
	Start    time.Duration
	Requests []Request
}

// Trace is a workload.
type Trace struct {
	Name string
	// Sessions ascend by Start, within each stage.
	Sessions []Session
	// Lanes is how many sessions go on side by side in a closed loop, in which a session starts when another has ended and Start
	// says nothing. 0: each session starts at its Start.
	Lanes int
	// Stages are the places of the sessions that begin a stage, after the first. Each stage waits until every request of the one before
	// is over and Pause has passed; its sessions' Starts, ascending within it, count from then on. Nil: one stage.
	Stages []int
	Pause  time.Duration
}

// Requests counts the requests of all sessions.
func (t *Trace) Requests() int {
	n := 0
	for i := range t.Sessions {
		n += len(t.Sessions[i].Requests)
	}
	return n
}

// maxTime bounds every time in a trace, and speed's inverse times this still fits a Duration.
const maxTime = 1e7 * time.Second

// seconds is a time read from a file, which a caller has checked to be in bounds.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// hasten makes all times pass so much faster.
func (t *Trace) hasten(speed float64) {
	faster := func(d time.Duration) time.Duration { return time.Duration(float64(d) / speed) }
	for i := range t.Sessions {
		s := &t.Sessions[i]
		s.Start = faster(s.Start)
		for j := range s.Requests {
			s.Requests[j].Think = faster(s.Requests[j].Think)
		}
	}
	t.Pause = faster(t.Pause)
}
