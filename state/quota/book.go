package quota

import "time"

// Book is one key's limits where nobody is asked: at a lone node, or by a node's
// share while the owner is out of reach. It is not safe for concurrent use.
type Book struct {
	requests, tokens bucket
	last             time.Duration
	begun            bool
}

// aside is after how long without use a share is begun anew.
const aside = time.Second

// Full has the book begin with all that a quiet key has saved up.
func (b *Book) Full(now time.Duration, l Limit) {
	l = l.Clean()
	b.begun, b.last = true, now
	b.requests = bucket{level: l.room(l.Requests), at: now}
	b.tokens = bucket{level: l.room(l.Tokens), at: now}
}

// Share takes one request out of a share of the limit, which begins with one request
// and what it costs, not with what a whole key saves up: the share is of a moment,
// and all nodes take theirs.
func (b *Book) Share(now time.Duration, l Limit, inUse int, tokens int64) Verdict {
	if !b.begun || now-b.last > aside {
		b.begun = true
		b.requests, b.tokens = bucket{level: 1, at: now}, bucket{level: 1, at: now}
	}
	v := b.Take(now, l, inUse, tokens)
	v.Degraded = true
	return v
}

// Take takes one request of so many tokens, with inUse others under way.
func (b *Book) Take(now time.Duration, l Limit, inUse int, tokens int64) (v Verdict) {
	l = l.Clean()
	b.last = now
	rooms := [2]float64{l.room(l.Requests), l.room(l.Tokens)}
	b.requests.fill(now, l.Requests, rooms[0])
	b.tokens.fill(now, l.Tokens, rooms[1])
	if l.Concurrent > 0 && inUse >= l.Concurrent {
		v = Verdict{Why: Concurrency, RetryAfter: slotRetry}
	}
	if wait := b.tokens.until(1, l.Tokens); wait > v.RetryAfter {
		v = Verdict{Why: Tokens, RetryAfter: wait}
	}
	if wait := b.requests.until(1, l.Requests); wait > v.RetryAfter {
		v = Verdict{Why: Requests, RetryAfter: wait}
	}
	if v.Why != Nothing {
		return v
	}
	b.requests.take(1, l.Requests, rooms[0])
	b.tokens.take(float64(min(max(tokens, 0), maxTokens)), l.Tokens, rooms[1])
	return Verdict{OK: true}
}

// Settle corrects what a request was booked with; requests are given back.
func (b *Book) Settle(now time.Duration, l Limit, requests, tokens int64) {
	l = l.Clean()
	b.requests.fill(now, l.Requests, l.room(l.Requests))
	b.tokens.fill(now, l.Tokens, l.room(l.Tokens))
	b.requests.take(-float64(requests), l.Requests, l.room(l.Requests))
	b.tokens.take(float64(min(max(tokens, -maxTokens), maxTokens)), l.Tokens, l.room(l.Tokens))
}

// Idle is whether the book is as a new one would be.
func (b *Book) Idle(now time.Duration, l Limit) bool {
	l = l.Clean()
	b.requests.fill(now, l.Requests, l.room(l.Requests))
	b.tokens.fill(now, l.Tokens, l.room(l.Tokens))
	full := func(b *bucket, rate float64) bool { return rate <= 0 || b.level >= l.room(rate) }
	return full(&b.requests, l.Requests) && full(&b.tokens, l.Tokens)
}
