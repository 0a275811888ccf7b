package quota

import (
	"slices"
	"time"
)

const (
	// pace is how long a holder waits before it asks again, where it got less than it
	// wanted. Shorter, and a flood that is refused becomes a flood of questions.
	pace = 20 * time.Millisecond
	// slotRetry is the same where all slots are taken: one may come free at any time.
	slotRetry = 5 * time.Millisecond
	// ownFor is how long the owner goes by the limit that it was last asked with by its
	// own node, whatever others say.
	ownFor = time.Minute
	// claimFor is after how long a claim that is not told again is forgotten: what was
	// to end it was lost.
	claimFor = 6 * time.Second
	// activeFor is how long a holder counts as one of those who share.
	activeFor = 5 * pace
)

// Self is this node among the holders.
const Self = 0

// Owner is the books of one key at the node that owns it. It is not safe for
// concurrent use.
type Owner struct {
	limit Limit
	owned time.Duration // when its own node was last asked
	isOwn bool          // limit is of its own node

	requests, tokens bucket
	claims           []claim

	// learning says that others may hold slots which were not told yet, and leeway how
	// many may be given meanwhile all the same.
	learning bool
	leeway   int

	clock float64 // of turns: see turn.go

	given, givenTokens meter
}

// claim is what one holder has.
type claim struct {
	holder uint8
	scarce bool // it was told that slots are scarce
	slots  int
	seq    uint64 // of its last question
	last   int    // how many slots the answer gave
	told   time.Duration
	turn
}

// NewOwner makes the books of a key that this node owns since then. It starts with
// nothing: what there was may have been given out by the owner before.
func NewOwner(since time.Duration) *Owner {
	return &Owner{requests: bucket{at: since}, tokens: bucket{at: since}, learning: true, leeway: -1}
}

// claim is the holder's, made if need be. It is valid until the next call.
func (o *Owner) claim(holder uint8) *claim {
	if i := o.find(holder); i >= 0 {
		return &o.claims[i]
	}
	o.claims = append(o.claims, claim{holder: holder})
	return &o.claims[len(o.claims)-1]
}

func (o *Owner) find(holder uint8) int {
	return slices.IndexFunc(o.claims, func(c claim) bool { return c.holder == holder })
}

// Learned says that all who may hold slots have told so.
func (o *Owner) Learned() { o.learning = false }

// Learning is whether Learned is still to be said.
func (o *Owner) Learning() bool { return o.learning }

// adopt takes the limit of a question, unless its own node's is another.
func (o *Owner) adopt(now time.Duration, holder uint8, l Limit) {
	if holder == Self {
		o.owned, o.isOwn = now, true
	} else if o.isOwn = o.isOwn && now-o.owned < ownFor; o.isOwn {
		l = o.limit
	}
	if l = l.Clean(); l != o.limit {
		o.limit = l
		if o.learning {
			o.leeway = max(l.Concurrent/16, 1)
		}
	}
	o.fill(now)
}

func (o *Owner) fill(now time.Duration) {
	l := &o.limit
	o.requests.fill(now, l.Requests, l.room(l.Requests))
	o.tokens.fill(now, l.Tokens, l.room(l.Tokens))
}

// Grant answers a question: all of what is needed, and of what is wanted as much as
// the others leave, or nothing.
func (o *Owner) Grant(now time.Duration, holder uint8, a *Ask) Grant {
	o.adopt(now, holder, a.Limit)
	need, want := o.limited(a.Need), o.limited(a.Want)
	c := o.claim(holder)
	c.slots, c.seq, c.last, c.told = min(max(a.Held, 0), MaxSlots), a.Seq, 0, now
	g := Grant{Seq: a.Seq, Limit: o.limit}
	there := o.there()
	waiting, before := o.others(now, c)
	if why, retry := o.short(there, need); why != Nothing {
		g.Why, g.Retry = why, max(retry, pace)
		if why == Concurrency {
			g.Retry = slotRetry
		}
	} else if before && o.tight(there, need, want, waiting) {
		g.Why, g.Retry = o.scarcest(need), slotRetry
	}
	if g.Why != Nothing {
		if need != (Amount{}) {
			c.at = now + g.Retry
		}
		return o.flag(g, c)
	}
	o.give(now, c, &g, need, o.part(now, c, there, want, waiting))
	switch {
	case want.Requests > g.Given.Requests:
		g.Why, g.Retry = Requests, pace
	case want.Tokens > g.Given.Tokens:
		g.Why, g.Retry = Tokens, pace
	case want.Slots > g.Given.Slots:
		g.Why, g.Retry = Concurrency, slotRetry
	}
	return o.flag(g, c)
}

// limited is an amount of what the owner limits: the asker may have other limits.
func (o *Owner) limited(a Amount) Amount {
	a = a.clean()
	if o.limit.Requests <= 0 {
		a.Requests = 0
	}
	if o.limit.Tokens <= 0 {
		a.Tokens = 0
	}
	if o.limit.Concurrent <= 0 {
		a.Slots = 0
	}
	return a
}

// there is what could be given.
func (o *Owner) there() Amount {
	return Amount{Requests: int64(o.requests.level), Tokens: int64(o.tokens.level), Slots: o.free()}
}

// free is how many slots nobody has.
func (o *Owner) free() int {
	free := o.limit.Concurrent
	for i := range o.claims {
		free -= o.claims[i].slots
	}
	if o.learning {
		free = min(free, o.leeway)
	}
	return max(free, 0)
}

// short is what does not suffice for the need, and for how long. Tokens may be had
// while there are any: a request that costs more than there is puts the key in debt,
// or a long prompt would wait for ever behind short ones.
func (o *Owner) short(there, need Amount) (why Why, retry time.Duration) {
	if need.Slots > there.Slots {
		why = Concurrency
	}
	if need.Tokens > 0 && there.Tokens < 1 {
		why, retry = Tokens, o.tokens.until(1, o.limit.Tokens)
	}
	if need.Requests > there.Requests {
		if wait := o.requests.until(float64(need.Requests), o.limit.Requests); wait >= retry {
			why, retry = Requests, wait
		}
	}
	return why, retry
}

// part is how much of what is there the holder may have: its part where others were
// refused or there is little, else what it wants.
func (o *Owner) part(now time.Duration, c *claim, there, want Amount, waiting int) Amount {
	sharers := int64(o.sharers(now, c))
	l := &o.limit
	a := Amount{Requests: there.Requests, Tokens: max(there.Tokens, 0), Slots: there.Slots / (waiting + 1)}
	if waiting > 0 || a.Requests < int64(l.room(l.Requests)/2) {
		a.Requests /= sharers
	}
	if waiting > 0 || a.Tokens < int64(l.room(l.Tokens)/2) {
		a.Tokens /= sharers
	}
	return Amount{Requests: min(want.Requests, a.Requests), Tokens: min(want.Tokens, a.Tokens), Slots: min(want.Slots, a.Slots)}
}

// give books what is given: the part, and at least the need.
func (o *Owner) give(now time.Duration, c *claim, g *Grant, need, part Amount) {
	l := &o.limit
	g.Given = Amount{Requests: max(need.Requests, part.Requests), Tokens: max(need.Tokens, part.Tokens), Slots: max(need.Slots, part.Slots)}
	o.requests.take(float64(g.Given.Requests), l.Requests, l.room(l.Requests))
	o.tokens.take(float64(g.Given.Tokens), l.Tokens, l.room(l.Tokens))
	c.slots, c.last = c.slots+g.Given.Slots, g.Given.Slots
	if o.learning {
		o.leeway = max(o.leeway-g.Given.Slots, 0)
	}
	o.given.add(now, float64(g.Given.Requests))
	o.givenTokens.add(now, float64(g.Given.Tokens))
	o.served(c, g.Given)
}

// scarceSlots is whether slots that are not used would be missed, with so many free.
func (o *Owner) scarceSlots(free int) bool {
	return o.limit.Concurrent > 0 && free < max(o.limit.Concurrent/4, 2)
}

func (o *Owner) flag(g Grant, c *claim) Grant {
	g.Scarce = o.scarceSlots(o.free())
	c.scarce = g.Scarce
	return g
}

// Recall lists the holders that are to be told that slots are scarce: those that have
// some and do not know.
func (o *Owner) Recall(dst []uint8) []uint8 {
	if !o.scarceSlots(o.free()) {
		return dst
	}
	for i := range o.claims {
		if c := &o.claims[i]; !c.scarce && c.slots > 0 && c.holder != Self {
			c.scarce = true
			dst = append(dst, c.holder)
		}
	}
	return dst
}

// Told takes a report.
func (o *Owner) Told(now time.Duration, holder uint8, r *Report) {
	i := o.find(holder)
	if i < 0 && r.Held <= 0 && r.Back == (Amount{}) {
		return
	}
	c := o.claim(holder)
	if r.Seq < c.seq {
		return // an answer is under way that it does not know of
	}
	c.slots, c.told = min(max(r.Held, 0), MaxSlots), now
	if r.Seq == c.seq && !r.Applied {
		c.slots = min(c.slots+c.last, MaxSlots)
	}
	o.back(now, r.Back)
}

// back takes what a holder gives back, as far as there is room for it.
func (o *Owner) back(now time.Duration, a Amount) {
	if a == (Amount{}) || o.limit.None() {
		return
	}
	o.fill(now)
	l := &o.limit
	requests := min(max(a.Requests, 0), maxTokens)
	tokens := min(max(a.Tokens, -maxTokens), maxTokens)
	o.requests.take(-float64(requests), l.Requests, l.room(l.Requests))
	o.tokens.take(-float64(tokens), l.Tokens, l.room(l.Tokens))
	o.given.add(now, -float64(requests))
	o.givenTokens.add(now, -float64(tokens))
}

// Drop forgets what a holder has: its lease is over.
func (o *Owner) Drop(holder uint8) {
	if i := o.find(holder); i >= 0 {
		o.claims = slices.Delete(o.claims, i, i+1)
	}
}

// Tend forgets claims that nobody tells any more; its own node's are never stale.
func (o *Owner) Tend(now time.Duration) {
	o.claims = slices.DeleteFunc(o.claims, func(c claim) bool { return c.holder != Self && now-c.told > claimFor })
}

// Idle is whether nothing would be lost with these books.
func (o *Owner) Idle(now time.Duration) bool {
	o.fill(now)
	l := &o.limit
	full := func(b *bucket, rate float64) bool { return rate <= 0 || b.level >= l.room(rate) }
	for i := range o.claims {
		if o.claims[i].slots > 0 {
			return false
		}
	}
	return full(&o.requests, l.Requests) && full(&o.tokens, l.Tokens)
}

// Used is how much all nodes use, as far as the owner knows.
func (o *Owner) Used(now time.Duration) Use {
	o.given.roll(now)
	o.givenTokens.roll(now)
	u := Use{Requests: max(o.given.rate, 0), Tokens: max(o.givenTokens.rate, 0)}
	for i := range o.claims {
		u.Concurrent += o.claims[i].slots
	}
	return u
}

// Limit is what the owner goes by.
func (o *Owner) Limit() Limit { return o.limit }
