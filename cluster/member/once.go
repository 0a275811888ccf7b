package member

import (
	"sync"
	"time"
)

// once remembers what was logged, so that each thing is logged one time, and bounds
// how fast new things are: strangers choose some of the text.
type once struct {
	mu     sync.Mutex
	seen   map[string]struct{}
	tokens float64
	last   time.Time
}

const (
	onceMax    = 1024            // things remembered; then all are forgotten
	onceBurst  = 20              // lines at once
	onceRefill = 5 * time.Second // for one more
)

// first tells whether key is to be logged now.
func (o *once) first(key string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.seen[key]; ok {
		return false
	}
	if !o.allowed(now) {
		return false
	}
	if o.seen == nil || len(o.seen) >= onceMax {
		o.seen = map[string]struct{}{}
	}
	o.seen[key] = struct{}{}
	return true
}

// forget lets key be logged again.
func (o *once) forget(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, key)
}

func (o *once) allowed(now time.Time) bool {
	if o.last.IsZero() {
		o.tokens = onceBurst
	} else {
		o.tokens = min(onceBurst, o.tokens+float64(now.Sub(o.last))/float64(onceRefill))
	}
	o.last = now
	if o.tokens < 1 {
		return false
	}
	o.tokens--
	return true
}
