package cluster

import (
	"sync"
	"time"
)

// An owner that has answered nothing of hungAfter questions, each asked after the
// one before was given up, hangs: it is not asked for skip, and the next question
// that it does not answer then begins another skip. One late answer is a matter
// of scheduling, and so are the many that are late at the same moment.
const (
	skip      = 250 * time.Millisecond
	hungAfter = 3
)

// trust is how many budgets an owner is waited for that was not found hanging: what
// delays it then is a busy machine, a burst on few cores for one, and its answer
// is worth more than the wait.
const trust = 8

// farthest bounds what the way to an owner may take.
const farthest = 250 * time.Millisecond

// far is how long a question to a peer is waited for at least: twice the time that
// a ping took. Where nodes are further apart than the budget, the alternative
// would be never to ask, which costs more than the way. An owner that is too far is
// not asked.
func (p *peer) far() (wait time.Duration, tooFar bool) {
	l := p.connected()
	if l == nil {
		return 0, false
	}
	rtt := l.RTT()
	return min(2*rtt, farthest), rtt > farthest
}

// patience is what this node has with an owner that does not answer in time.
type patience struct {
	mu     sync.Mutex
	misses int
	last   time.Duration // when the last one was counted
	until  time.Duration // when it is asked again
}

// hung is whether the owner is not to be asked now.
func (t *patience) hung(now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now < t.until
}

// limit is how long the owner's answer is waited for.
func (t *patience) limit(budget time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.misses < hungAfter {
		return trust * budget
	}
	return budget
}

// missed takes a question of asked that was given up now.
func (t *patience) missed(asked, now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.misses > 0 && asked < t.last {
		return
	}
	t.last = now
	if t.misses++; t.misses >= hungAfter {
		t.until = now + skip
	}
}

// answered takes an answer, also one that came too late.
func (t *patience) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.misses = 0
}
