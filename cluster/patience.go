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

func (t *patience) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.misses = 0
}
