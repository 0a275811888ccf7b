package trace

import (
	"cmp"
	"slices"
	"time"
)

// TenantOptions is conversations of many tenants, each with a system prompt of its own that all its conversations begin with.
type TenantOptions struct {
	Name string
	Seed uint64

	// Tenants is their number; 0 is 1. With one, all sessions share a prefix and only load tells backends apart. With many, their
	// prompts don't fit into one cache and must be shared out.
	Tenants int
	// Zipf is how unequal they are: the k-th has a share of 1/k^Zipf. 0 is 1, the usual; near 0 all are equal.
	Zipf float64
	// SystemTokens is the length of a system prompt.
	SystemTokens int

	// Rate is of sessions a second, Poisson, for Duration. Sessions that have begun go on to their end.
	Rate     float64
	Duration time.Duration

	// Turns is how many requests a session has on average, geometric: it goes on with the same chance after each. 0 is 5.
	Turns float64
	// Think is how long a client takes from an answer to its next question on average, exponential. The longer, the more is evicted
	// in between. 0 is 20 s.
	Think time.Duration

	// QuestionTokens and AnswerTokens are means of log-normal sizes. 0 is 400 and 300.
	QuestionTokens int
	AnswerTokens   int
}

// TenantWorkloads are five that differ in what is scarce. The last one is meant for engines with little cache (the 32B profile),
// the others for eight of the 70B profile.
var TenantWorkloads = []TenantOptions{
	{Name: "tenants-1", Tenants: 1, SystemTokens: 4000, Rate: 3, Duration: 10 * time.Minute},
	{Name: "tenants-20", Tenants: 20, SystemTokens: 8000, Rate: 3, Duration: 10 * time.Minute},
	{Name: "tenants-200", Tenants: 200, SystemTokens: 8000, Rate: 2.5, Duration: 10 * time.Minute},
	{Name: "tenants-1000", Tenants: 1000, SystemTokens: 12_000, Rate: 1.5, Duration: 10 * time.Minute},
	{Name: "tenants-50", Tenants: 50, SystemTokens: 6000, Rate: 2, Duration: 10 * time.Minute},
}

func (o TenantOptions) withDefaults() TenantOptions {
	o.Tenants = max(o.Tenants, 1)
	o.Zipf = cmp.Or(o.Zipf, 1)
	o.Turns = max(cmp.Or(o.Turns, 5), 1)
	o.Think = cmp.Or(o.Think, 20*time.Second)
	o.QuestionTokens = max(cmp.Or(o.QuestionTokens, 400), 1)
	o.AnswerTokens = max(cmp.Or(o.AnswerTokens, 300), 1)
	return o
}

// Tenants has a session for each conversation.
func Tenants(o TenantOptions) *Trace {
	o = o.withDefaults()
	shares := newZipf(o.Tenants, o.Zipf)
	t := &Trace{Name: o.Name}
	for i, at := range seeded(o.Seed, 0).arrivals(o.Rate, o.Duration) {
		serial := uint64(i) + 1
		d := seeded(o.Seed, serial)
		tenant := shares.of(d)
		t.Sessions = append(t.Sessions, Session{Start: at, Requests: o.conversation(d, serial, uint64(tenant))})
	}
	return t
}

// conversation ends by chance, or before it outgrows what engines take.
func (o TenantOptions) conversation(d draw, serial, tenant uint64) []Request {
	var p text
	var requests []Request
	p.message(mix(systemKind, tenant), o.SystemTokens)
	for turn := uint64(0); ; turn++ {
		question, answer := d.size(o.QuestionTokens), d.size(o.AnswerTokens)
		if turn > 0 && p.tokens+question+answer > defaultMaxTokens {
			break
		}
		p.message(mix(questionKind, o.Seed, serial, turn), question)
		r := p.request(answer)
		if turn > 0 {
			r.After, r.Think, r.FollowUp = int(turn)-1, d.exponential(o.Think), true
		}
		requests = append(requests, r)
		if d.Float64() >= 1-1/o.Turns {
			break
		}
		p.message(mix(answerKind, o.Seed, serial, turn), answer)
		requests[turn].Answer = slices.Clip(p.names[len(r.Names):])
	}
	return requests
}
