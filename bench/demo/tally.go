package demo

import (
	"sync"
	"time"

	"kvca/bench/load"
)

// Result is what came of one turn.
type Result struct {
	// Backend is who answered.
	Backend string
	// FollowUp is whether an answer preceded it, Kept whether that was the same
	// backend's.
	FollowUp, Kept bool
	// Prompt is the prompt's length in tokens, Cached how many of them the backend
	// says it had in its cache.
	Prompt, Cached int
	// TTFT is the time to the first token.
	TTFT time.Duration
	// Err is what went wrong; then nothing else counts.
	Err error
}

// Counts are sums of results.
type Counts struct {
	Requests, Errors int64 // requests are those that went well
	FollowUps, Kept  int64
	Prompt, Cached   int64 // tokens

	waited time.Duration // sum of all times to the first token
	ttft   load.Histogram
}

func (c *Counts) add(r *Result) {
	if r.Err != nil {
		c.Errors++
		return
	}
	c.Requests++
	if r.FollowUp {
		c.FollowUps++
		if r.Kept {
			c.Kept++
		}
	}
	c.Prompt += int64(r.Prompt)
	c.Cached += int64(r.Cached)
	c.waited += r.TTFT
	c.ttft.Add(r.TTFT)
}

func (c *Counts) merge(o *Counts) {
	c.Requests += o.Requests
	c.Errors += o.Errors
	c.FollowUps += o.FollowUps
	c.Kept += o.Kept
	c.Prompt += o.Prompt
	c.Cached += o.Cached
	c.waited += o.waited
	c.ttft.Merge(&o.ttft)
}

// KeptShare is the share of follow-ups that the backend of the turn before
// answered, 0 without any.
func (c *Counts) KeptShare() float64 { return share(c.Kept, c.FollowUps) }

// CachedShare is the share of prompt tokens that came from a cache.
func (c *Counts) CachedShare() float64 { return share(c.Cached, c.Prompt) }

// MeanTTFT is the mean time to the first token.
func (c *Counts) MeanTTFT() time.Duration { return c.waited / time.Duration(max(c.Requests, 1)) }

// P90TTFT is the time within which nine of ten had their first token, to 3 %.
func (c *Counts) P90TTFT() time.Duration { return c.ttft.Quantile(0.9) }

func share(part, whole int64) float64 { return float64(part) / float64(max(whole, 1)) }

// recentSeconds are kept one by one for the recent sums: ten whole ones, and the
// one that has just begun.
const recentSeconds = 11

// maxBackends bounds how many backends are told apart.
const maxBackends = 1024

// Tally sums up the results of one gateway. It may be used from any goroutine.
type Tally struct {
	mu       sync.Mutex
	began    time.Time
	total    Counts
	seconds  [recentSeconds]second
	backends map[string]int64
	first    error
}

// second is what was counted in one second since the start.
type second struct {
	index int64
	Counts
}

// NewTally is a tally whose time begins now. The backends named are listed before
// they have answered anything.
func NewTally(backends ...string) *Tally {
	t := &Tally{began: time.Now(), backends: make(map[string]int64)}
	for _, id := range backends {
		t.backends[id] = 0
	}
	return t
}

// Add counts a result.
func (t *Tally) Add(r Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total.add(&r)
	index := int64(time.Since(t.began) / time.Second)
	slot := &t.seconds[index%recentSeconds]
	if slot.index != index {
		*slot = second{index: index}
	}
	slot.add(&r)
	if r.Err != nil {
		if t.first == nil {
			t.first = r.Err
		}
		return
	}
	if _, known := t.backends[r.Backend]; known || len(t.backends) < maxBackends {
		t.backends[r.Backend]++
	}
}

// Snapshot is what a tally holds at one moment.
type Snapshot struct {
	Elapsed, RecentSpan time.Duration
	Total, Recent       Counts
	// Backends is how many requests each answered.
	Backends map[string]int64
	// Err is the first error.
	Err error
}

// Snapshot copies the sums.
func (t *Tally) Snapshot() *Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	elapsed := time.Since(t.began)
	oldest := max(int64(elapsed/time.Second)-recentSeconds+1, 0)
	s := &Snapshot{Elapsed: elapsed, Total: t.total, Backends: make(map[string]int64, len(t.backends)), Err: t.first}
	s.RecentSpan = elapsed - time.Duration(oldest)*time.Second
	for i := range t.seconds {
		if slot := &t.seconds[i]; slot.index >= oldest {
			s.Recent.merge(&slot.Counts)
		}
	}
	for id, n := range t.backends {
		s.Backends[id] = n
	}
	return s
}
