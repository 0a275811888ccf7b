package backend

import "time"

const (
	breakerFirst = time.Second // how long a breaker stays open the first time
	breakerMost  = 4 * time.Second
)

type breakerState uint8

const (
	breakerClosed breakerState = iota
	breakerOpen
	breakerHalfOpen // may be chosen; the next outcome decides
)

var breakerNames = [...]string{"closed", "open", "half-open"}

func (s breakerState) String() string { return breakerNames[s] }

// breaker judges a backend by what requests to it came to. It is a plain state
// machine: its owner holds the lock and brings the time.
//
// Failures count since the last success. Those a prompt may cause count toward
// opening only once prompts of two different chains have failed, so that one
// prompt that fails everywhere opens nothing.
type breaker struct {
	state    breakerState
	failures int
	chain    uint64 // of the first of the failures
	several  bool   // another chain has failed since, or a failure that no prompt causes
	backoff  time.Duration
	until    time.Time // open at least till then
	reason   Failure   // of the last opening
}

// fail counts a failure and reports whether the breaker should open. Whether it
// does is for the pool to say, which keeps half of its backends in.
func (b *breaker) fail(f Failure, chain uint64, threshold int) bool {
	if b.state == breakerOpen {
		return false
	}
	if b.failures == 0 {
		b.chain = chain
	}
	b.failures++
	b.several = b.several || chain != b.chain || !f.dependsOnPrompt()
	return b.ripe(threshold)
}

// ripe reports whether the failures so far are enough to open.
func (b *breaker) ripe(threshold int) bool {
	return b.state != breakerOpen && b.several && (b.state == breakerHalfOpen || b.failures >= threshold)
}

// open ejects the backend for twice as long as the last time; spread, from 0 to
// 1, keeps the breakers of a fleet from closing in step.
func (b *breaker) open(f Failure, now time.Time, spread float64) {
	b.backoff = min(max(2*b.backoff, breakerFirst), breakerMost)
	b.state, b.reason = breakerOpen, f
	b.until = now.Add(time.Duration((0.9 + 0.1*spread) * float64(b.backoff)))
}

// due reports whether a probe may half-open the breaker.
func (b *breaker) due(now time.Time) bool { return b.state == breakerOpen && !now.Before(b.until) }

// halfOpen keeps the failures: one more opens it again.
func (b *breaker) halfOpen() { b.state = breakerHalfOpen }

// reset closes the breaker and forgets, as after a success or a restart.
func (b *breaker) reset() { *b = breaker{} }

// clean reports whether a success would change nothing.
func (b *breaker) clean() bool { return *b == breaker{} }
