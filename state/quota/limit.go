package quota

import (
	"math"
	"time"
)

// Limit is what one key may use over the whole cluster. A field that is zero
// bounds nothing.
type Limit struct {
	// Requests and Tokens are a second.
	Requests, Tokens float64
	// Concurrent is how many requests may be under way at the same time.
	Concurrent int
	// Burst is how long a quiet key saves up what it does not use; 0: one second.
	// It counts as a tenth of a second at least, or what gathers between two
	// questions would be lost.
	Burst time.Duration
}

// Bounds of what a limit or an amount may say, whoever says it. Sums of what all
// holders say stay far within an int64 and what a float64 counts exactly.
const (
	maxRate   = 1e12
	maxTokens = int64(1) << 40
	// MaxSlots bounds the requests of one node that are under way for one key.
	MaxSlots = 1 << 20

	defaultBurst = time.Second
	minBurst     = 100 * time.Millisecond
	maxBurst     = time.Hour
)

// Clean is the limit with what makes no sense cut off: a negative rate bounds
// nothing.
func (l Limit) Clean() Limit {
	rate := func(r float64) float64 {
		if !(r > 0) { // NaN too
			return 0
		}
		return min(r, maxRate)
	}
	l.Requests, l.Tokens = rate(l.Requests), rate(l.Tokens)
	l.Concurrent = min(max(l.Concurrent, 0), MaxSlots)
	if l.Burst <= 0 {
		l.Burst = defaultBurst
	}
	l.Burst = min(max(l.Burst, minBurst), maxBurst)
	return l
}

// None is whether nothing is bounded.
func (l Limit) None() bool { return l.Requests <= 0 && l.Tokens <= 0 && l.Concurrent <= 0 }

// Share is one node's part where n nodes must do without the owner. Each may have
// one request under way, however few all together may.
func (l Limit) Share(n int) Limit {
	n = max(n, 1)
	l.Requests /= float64(n)
	l.Tokens /= float64(n)
	if l.Concurrent > 0 {
		l.Concurrent = max(l.Concurrent/n, 1)
	}
	return l
}

// room is how much a bucket of that rate holds: at least one, and a tenth of a second
// more, so that what gathers until it is asked for is not lost.
func (l Limit) room(rate float64) float64 {
	return max(rate*l.Burst.Seconds(), 1) + rate*minBurst.Seconds()
}

// Why says what was short.
type Why uint8

// What may be short.
const (
	Nothing Why = iota
	Requests
	Tokens
	Concurrency
)

var whyNames = [...]string{"", "requests", "tokens", "concurrency"}

// String is the reason's name in metrics and errors, "" for Nothing.
func (w Why) String() string {
	if int(w) < len(whyNames) {
		return whyNames[w]
	}
	return "unknown"
}

// Verdict is whether a request may begin.
type Verdict struct {
	OK bool
	// RetryAfter is when a refused one may be worth another try.
	RetryAfter time.Duration
	// Why is what was short, Nothing where it may begin.
	Why Why
	// Degraded says that the owner of the key could not be asked: the node went by
	// its share of the limit.
	Degraded bool
}

// Amount is so much of each of the three.
type Amount struct {
	Requests, Tokens int64
	Slots            int
}

// has is whether it has any of that.
func (a Amount) has(w Why) bool {
	switch w {
	case Requests:
		return a.Requests > 0
	case Tokens:
		return a.Tokens > 0
	}
	return w == Concurrency && a.Slots > 0
}

// clean cuts an amount to what one node can need.
func (a Amount) clean() Amount {
	return Amount{
		Requests: min(max(a.Requests, 0), maxTokens),
		Tokens:   min(max(a.Tokens, 0), maxTokens),
		Slots:    min(max(a.Slots, 0), MaxSlots),
	}
}

// seconds is d seconds as a duration, as long as can be at most.
func seconds(d float64) time.Duration {
	if d >= maxBurst.Seconds() {
		return maxBurst
	}
	return time.Duration(math.Ceil(max(d, 0) * float64(time.Second)))
}
