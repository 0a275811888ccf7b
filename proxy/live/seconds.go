package live

import (
	"slices"

	"kvca/proxy/record"
	"kvca/router"
)

// window is how many seconds are kept.
const window = 600

// reasons are those that a decision may have, in the order of second.reasons.
var reasons = [...]router.Reason{
	router.ReasonHit, router.ReasonMiss, router.ReasonLoadOverride, router.ReasonNoChain,
	router.ReasonPinned, router.ReasonLastResort, router.ReasonPolicy,
}

// second is what ended within one second, and what was under way.
type second struct {
	at int64 // since 1970; 0 for none
	// errors are answers of 500 and above, refused those of 400 and above.
	requests, errors, refused, degraded uint32
	// prompt and cached count only where the engine reports what was cached.
	prompt, cached, output int64
	reasons                [len(reasons)]uint32
	inFlight, queued       int64
	firstByte              spread
}

func (s *second) add(r *record.Record) {
	s.requests++
	switch {
	case r.Status >= 500:
		s.errors++
	case r.Status >= 400:
		s.refused++
	}
	if r.PromptTokens > 0 && r.CachedTokens >= 0 {
		s.prompt += r.PromptTokens
		s.cached += r.CachedTokens
	}
	s.output += max(r.OutputTokens, 0)
	if r.FirstByte > 0 {
		s.firstByte.add(r.FirstByte)
	}
	if d := r.Decision; d != nil {
		if i := slices.Index(reasons[:], d.Reason); i >= 0 {
			s.reasons[i]++
		}
		if d.Degraded {
			s.degraded++
		}
	}
}

// merge adds another second's traffic; what is under way is the most of both.
func (s *second) merge(o *second) {
	s.requests += o.requests
	s.errors += o.errors
	s.refused += o.refused
	s.degraded += o.degraded
	s.prompt += o.prompt
	s.cached += o.cached
	s.output += o.output
	for i, n := range o.reasons {
		s.reasons[i] += n
	}
	s.inFlight, s.queued = max(s.inFlight, o.inFlight), max(s.queued, o.queued)
	s.firstByte.merge(&o.firstByte)
}

// seconds is the ring of the last ten minutes.
type seconds struct {
	newest int64
	ring   [window]second
}

// now is the bucket of the second at. Where the clock was set back a little, the
// newest one goes on; where it was set back beyond what is kept, all is forgotten.
func (s *seconds) now(at int64) *second {
	at = max(at, 1)
	if at <= s.newest-window {
		*s = seconds{}
	}
	s.newest = max(s.newest, at)
	b := &s.ring[s.newest%window]
	if b.at != s.newest {
		*b = second{at: s.newest}
	}
	return b
}

// get copies the bucket of the second at into b, and is false where there is none.
func (s *seconds) get(at int64, b *second) bool {
	if at < 1 || at > s.newest || at <= s.newest-window {
		return false
	}
	*b = s.ring[at%window]
	return b.at == at
}
