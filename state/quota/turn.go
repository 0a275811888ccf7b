package quota

import "time"

// Whose turn it is. Where there is less than is asked for, who asks first gets it,
// and the node that owns the key is always first. So each holder has a tag that
// advances with what it gets, as in start-time fair queueing: one whose tag is ahead
// of somebody's who was refused lets that one come first. It waits a moment only: who
// was refused may have nobody left to ask for.

// turnFor is how long somebody who was refused is waited for, from when it may ask
// again.
const turnFor = 20 * time.Millisecond

// turn is a holder's place among those who wait.
type turn struct {
	tag float64       // in seconds of the limit
	at  time.Duration // when it may ask again that was refused, 0: it was not
}

func (t *turn) waits(now time.Duration) bool {
	return t.at > 0 && now > t.at-turnFor/4 && now < t.at+turnFor
}

// others is how many other holders are waited for, and whether one of them comes
// before c.
func (o *Owner) others(now time.Duration, c *claim) (waiting int, before bool) {
	mine := max(c.tag, o.clock)
	for i := range o.claims {
		d := &o.claims[i]
		if d.holder == c.holder || !d.waits(now) {
			continue
		}
		waiting++
		before = before || max(d.tag, o.clock) < mine
	}
	return waiting, before
}

// tight is whether those who wait could go without if this one got what it wants.
func (o *Owner) tight(there, need, want Amount, waiting int) bool {
	l := &o.limit
	return l.Requests > 0 && there.Requests < need.Requests+int64(waiting) ||
		l.Tokens > 0 && there.Tokens < want.Tokens ||
		l.Concurrent > 0 && need.Slots > 0 && there.Slots < need.Slots+waiting
}

// scarcest is what to name where another holder comes first.
func (o *Owner) scarcest(need Amount) Why {
	switch {
	case need.Slots > 0:
		return Concurrency
	case need.Tokens > 0:
		return Tokens
	}
	return Requests
}

// sharers is how many holders asked lately, c included.
func (o *Owner) sharers(now time.Duration, c *claim) (n int) {
	for i := range o.claims {
		if d := &o.claims[i]; d.holder == c.holder || now-d.told < activeFor {
			n++
		}
	}
	return n
}

// served moves the holder's tag by what it got.
func (o *Owner) served(c *claim, given Amount) {
	cost := 0.0
	add := func(n, limit float64) {
		if limit > 0 {
			cost = max(cost, n/limit)
		}
	}
	add(float64(given.Requests), o.limit.Requests)
	add(float64(given.Tokens), o.limit.Tokens)
	add(float64(given.Slots), float64(o.limit.Concurrent))
	o.clock = max(c.tag, o.clock)
	c.tag, c.at = o.clock+cost, 0
}
