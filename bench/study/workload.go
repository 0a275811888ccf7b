package study

import (
	"fmt"
	"time"

	"kvca/bench/trace"
)

// Source names a trace: a workload, at most so many of its requests, and how hard
// it presses.
type Source struct {
	Workload string
	// Rate is how much faster than recorded sessions arrive, of generated ones how
	// many a second; in a closed loop it is how many sessions go on side by side.
	Rate float64
	// Limit is of requests, whole sessions; 0 is all of the workload's.
	Limit int
}

// workload is a trace at no particular rate.
type workload struct {
	says string // in the report
	// requests is about how many it has, and seconds how long one node's run takes
	// of one core.
	requests int
	seconds  float64
	recorded string // its file, "" where it is generated
	slice    string // the part of it that the repository holds
	open     func(path string, seed uint64, limit int) (*trace.Trace, error)
}

// agentThink bounds the think times of agents. Some of those recorded are nights,
// after which a session says nothing about routing; with them most lanes sleep.
const agentThink = 5 * time.Minute

// agentRequests are as many as the policy's prototype was tried on.
const agentRequests = 7600

var workloads = map[string]workload{
	"conversation": {
		says:     "Mooncake's conversation trace, each group of one time stamp spread over its 3 s",
		requests: 12_000, seconds: 1, recorded: "mooncake_conversation.jsonl.gz", slice: "mooncake_500.jsonl.gz",
		open: func(path string, seed uint64, limit int) (*trace.Trace, error) {
			return trace.Open(path, trace.Options{Seed: seed, Limit: limit})
		},
	},
	"agent": {
		says:     fmt.Sprintf("recorded coding-agent sessions, the first %d requests, in a closed loop with their think times, at most 5 minutes; the seed decides the sessions' order", agentRequests),
		requests: agentRequests, seconds: 2, recorded: "agent_sessions.jsonl.gz", slice: "agents_5.jsonl.gz",
		open: func(path string, seed uint64, limit int) (*trace.Trace, error) {
			if limit == 0 {
				limit = agentRequests
			}
			t, err := trace.Open(path, trace.Options{Limit: limit, MaxThink: agentThink})
			if err == nil {
				shuffle(t, seed)
			}
			return t, err
		},
	},
	"tenants-1":    tenants(0),
	"tenants-20":   tenants(1),
	"tenants-200":  tenants(2),
	"tenants-1000": tenants(3),
	"tenants-50":   tenants(4),
	"fleet": {
		says:     fmt.Sprintf("%d tenants' short conversations, %.4g sessions a second, about 820 requests a second for 180 s", fleetTenants.Tenants, fleetSessions),
		requests: 148_000, seconds: 14,
		open: func(_ string, seed uint64, limit int) (*trace.Trace, error) {
			o := fleetTenants
			o.Seed = seed
			return first(trace.Tenants(o), limit), nil
		},
	},
	"ladder-73": ladder(trace.Ladder73, "llm-d's 73 % capacity case: 150 prefixes of 6,000 tokens"),
	"climb-37":  staged(trace.Ladder37, trace.Stages37, "llm-d's 37 % capacity case: 83 prefixes of 8,000 tokens, three questions of 1,000 each"),
	"climb-73":  staged(trace.Ladder73, trace.Stages73, "llm-d's 73 % capacity case: 150 prefixes of 6,000 tokens, five questions of 1,200 each"),
}

// staged is a ladder as it was climbed where its figures were taken.
func staged(o trace.LadderOptions, stages []trace.Stage, says string) workload {
	requests := 0
	for _, s := range stages {
		requests += int(s.Rate * s.Duration.Seconds())
	}
	return workload{
		says: says, requests: requests, seconds: float64(requests) / 6000,
		open: func(_ string, seed uint64, limit int) (*trace.Trace, error) {
			o := o
			o.Seed = seed
			return trace.Climb(o, stages), nil
		},
	}
}

func tenants(place int) workload {
	o := trace.TenantWorkloads[place]
	o.Duration = time.Duration(float64(o.Duration) * o.Rate) // as many sessions, at one a second
	o.Rate = 1
	return workload{
		says:     fmt.Sprintf("%d tenants with a system prompt of %d tokens each, conversations of 5 turns on average", o.Tenants, o.SystemTokens),
		requests: int(5 * o.Duration.Seconds()), seconds: 0.5,
		open: func(_ string, seed uint64, limit int) (*trace.Trace, error) {
			o := o
			o.Seed = seed
			return first(trace.Tenants(o), limit), nil
		},
	}
}

// fleetSessions arrive each second, of fleetTurns requests each.
const (
	fleetTurns    = 4.0
	fleetSessions = 820 / fleetTurns
	fleetSeconds  = 180
)

// fleetTenants are short conversations, so that a fleet of 240 is busy with
// answers more than with prompts.
var fleetTenants = trace.TenantOptions{
	Name: "fleet", Tenants: 200, SystemTokens: 1000, Rate: 1, Duration: fleetSeconds * fleetSessions * time.Second,
	Turns: fleetTurns, Think: 5 * time.Second, QuestionTokens: 100, AnswerTokens: 400,
}

// ladderRequests are enough for the queues of an overloaded fleet to show.
const ladderRequests = 1200

func ladder(o trace.LadderOptions, says string) workload {
	o.Rate, o.Duration = 1, ladderRequests*time.Second
	return workload{
		says: says, requests: ladderRequests, seconds: 0.1,
		open: func(_ string, seed uint64, limit int) (*trace.Trace, error) {
			o := o
			o.Seed = seed
			return first(trace.Ladder(o), limit), nil
		},
	}
}
