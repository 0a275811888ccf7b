package proxy

import (
	"sync"
	"time"
)

// Retries may be a fifth of the traffic, so that a fleet in trouble isn't
// drowned by them, but a quiet gateway may always make ten a second.
const (
	retryShare   = 0.2
	retryFloor   = 10 // a second
	retrySeconds = 10 // the window
)

// retryBudget counts requests and retries over the last seconds. The zero value
// is ready.
type retryBudget struct {
	mu      sync.Mutex
	seconds [retrySeconds]struct {
		at                int64
		requests, retries int
	}
}

func (b *retryBudget) slot(now time.Time) int {
	at := now.Unix()
	i := int(at % retrySeconds)
	if b.seconds[i].at != at {
		b.seconds[i].at, b.seconds[i].requests, b.seconds[i].retries = at, 0, 0
	}
	return i
}

func (b *retryBudget) request(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seconds[b.slot(now)].requests++
}

// allow books one retry, if the window has room for it or it must be.
func (b *retryBudget) allow(now time.Time, must bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	current := b.slot(now)
	requests, retries := 0, 0
	for _, s := range b.seconds {
		if now.Unix()-s.at < retrySeconds {
			requests += s.requests
			retries += s.retries
		}
	}
	if !must && float64(retries) >= max(retryShare*float64(requests), retryFloor*retrySeconds) {
		return false
	}
	b.seconds[current].retries++
	return true
}
