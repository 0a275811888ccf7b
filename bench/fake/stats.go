package fake

import (
	"sync"
	"sync/atomic"
	"time"
)

// maxServed bounds the list of marked requests that a fleet remembers.
const maxServed = 1 << 18

// Stats is what a fleet was asked since it started.
type Stats struct {
	Backends []BackendStats `json:"backends"`
	// Served lists the marked requests in the order in which they ended.
	Served []Served `json:"served"`
}

// BackendStats are the counts of one backend.
type BackendStats struct {
	Requests int64 `json:"requests"`
	Active   int64 `json:"active"`
	// Cancelled counts clients that left before their answer was complete,
	// Broken those that left before their request was.
	Cancelled int64 `json:"cancelled"`
	Broken    int64 `json:"broken"`
}

// Served is one marked request that arrived whole.
type Served struct {
	Conversation int  `json:"conversation"`
	Turn         int  `json:"turn"`
	Backend      int  `json:"backend"`
	Cancelled    bool `json:"cancelled"`
	// Ended is when the answer was complete or the client was seen to be gone.
	Ended time.Time `json:"ended"`
}

type counters struct {
	requests, active, cancelled, broken atomic.Int64
}

func (c *counters) stats() BackendStats {
	return BackendStats{
		Requests:  c.requests.Load(),
		Active:    c.active.Load(),
		Cancelled: c.cancelled.Load(),
		Broken:    c.broken.Load(),
	}
}

// book is the list of marked requests of all backends of a fleet.
type book struct {
	mu     sync.Mutex
	served []Served
}

func (b *book) add(s Served) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.served) < maxServed {
		b.served = append(b.served, s)
	}
}

func (b *book) list() []Served {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Served{}, b.served...)
}
