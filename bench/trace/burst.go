package trace

import (
	"cmp"
	"slices"
	"time"
)

// BurstOptions is a steady background, and a prefix that many ask about at once and nobody before: a document that a link was sent to,
// a batch job.
type BurstOptions struct {
	Name string
	// Background is what goes on meanwhile. Its Seed is the burst's too.
	Background TenantOptions

	// At is when the burst begins; its Requests come uniformly within Over. At 0 all of them come at once, before the first is
	// answered.
	At       time.Duration
	Over     time.Duration
	Requests int

	// PrefixTokens is what they have in common; QuestionTokens follow, each request's own.
	PrefixTokens   int
	QuestionTokens int
	OutputTokens   int
}

// Burst has each of the burst's requests in a session of its own.
func Burst(o BurstOptions) *Trace {
	t := Tenants(o.Background)
	t.Name = o.Name
	d := seeded(o.Background.Seed, ^uint64(0))
	for i := range o.Requests {
		var p text
		p.message(hotKind, o.PrefixTokens)
		p.message(mix(hotKind, o.Background.Seed, uint64(i)), o.QuestionTokens)
		at := o.At + time.Duration(d.Float64()*float64(o.Over))
		t.Sessions = append(t.Sessions, Session{Start: at, Requests: []Request{p.request(o.OutputTokens)}})
	}
	slices.SortStableFunc(t.Sessions, func(a, b Session) int { return cmp.Compare(a.Start, b.Start) })
	return t
}
