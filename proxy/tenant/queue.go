package tenant

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	// ErrQueueFull is for a request that got no place in the queue, or lost it to
	// others.
	ErrQueueFull = errors.New("the queue is full")
	// ErrWaited is for a request that waited as long as it may.
	ErrWaited = errors.New("the wait for a turn took too long")
)

const (
	pollRoomEvery = 20 * time.Millisecond
	mostWaiting   = 16384
)

// QueueConfig bounds a Queue. Zero fields take their defaults.
type QueueConfig struct {
	// MaxWaiting is how many requests may wait, over all pools. Too few turn away
	// clients that a second's patience would have served; many make each wait in
	// vain that the backends can't serve in MaxWait. Default 1024, at most 16384.
	MaxWaiting int
	// MaxBytes is how much memory the bodies of waiting requests may hold. It should
	// stay below the proxy's budget for all bodies, else waiting requests keep
	// others from being read. Default 256 MiB.
	MaxBytes int64
	// MaxWait is how long a request may wait. Longer than clients' patience, and
	// backends work for those who have gone. Default 30 s.
	MaxWait time.Duration
}

func (c QueueConfig) withDefaults() QueueConfig {
	if c.MaxWaiting <= 0 {
		c.MaxWaiting = 1024
	}
	c.MaxWaiting = min(c.MaxWaiting, mostWaiting)
	if c.MaxBytes <= 0 {
		c.MaxBytes = 256 << 20
	}
	if c.MaxWait <= 0 {
		c.MaxWait = 30 * time.Second
	}
	return c
}

// Waiter says who waits.
type Waiter struct {
	// Tenant shares turns with others of its class, by Weight.
	Tenant string
	// Class is 0 for first to 9 for last.
	Class int
	// Weight is the tenant's share; what is out of range counts as the nearest that
	// isn't, zero as 1.
	Weight float64
	// Bytes is the memory that is held while it waits.
	Bytes int64
	// Deadline is when it may wait no longer, zero for MaxWait from now.
	Deadline time.Time
}

// Queue lets requests in as their pool has room.
type Queue struct {
	config  QueueConfig
	metrics *queueMetrics
	waiting atomic.Int64 // the order's, to be read without the lock

	mu      sync.Mutex
	order   *order
	timer   *time.Timer
	running bool // the timer, or what it calls
}

// NewQueue makes a queue; reg may be nil.
func NewQueue(c QueueConfig, reg prometheus.Registerer) *Queue {
	c = c.withDefaults()
	return &Queue{
		config: c, metrics: newQueueMetrics(reg),
		order: newOrder(c.MaxWaiting, c.MaxBytes, c.MaxWait/2),
	}
}

// Enter returns nil once the request may go on: at once where room is true and nobody
// waits for the pool, else when its turn has come. Otherwise it returns ErrQueueFull,
// ErrWaited or the context's error. The time is 0 exactly where it didn't wait.
//
// room is the pool's, not the request's: it is called by whoever looks for the next,
// from any goroutine, a moment after Enter has returned even; it must not wait, panic or call
// the queue. Who was let in after a wait calls Booked once room shows it.
func (q *Queue) Enter(ctx context.Context, pool string, w Waiter, room func() bool) (time.Duration, error) {
	if !q.busy(pool) && room() {
		return 0, nil
	}
	if err := ctx.Err(); err != nil {
		q.gone(err)
		return 0, err
	}
	return q.wait(ctx, pool, w, room)
}

// Freed is told that a request of the pool has ended, and lets in at most one. It
// costs an atomic load where nobody waits.
func (q *Queue) Freed(pool string) {
	if q.waiting.Load() > 0 {
		q.admit(pool, true)
	}
}

// Booked is told that a request which Enter let in after a wait has been booked, or
// has failed to be: from now on room tells the truth, and the next may come in.
// Without it the next comes in when one has ended, or after 20 ms.
func (q *Queue) Booked(pool string) {
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	q.order.booked(pool)
	q.mu.Unlock()
	q.admit(pool, false)
}

// WaitingAll is how many wait, over all pools.
func (q *Queue) WaitingAll() int64 { return q.waiting.Load() }

// Waiting is how many wait for the pool.
func (q *Queue) Waiting(pool string) int {
	if q.waiting.Load() == 0 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.order.lines[pool]; l != nil {
		return l.waiting
	}
	return 0
}

func (q *Queue) busy(pool string) bool { return q.Waiting(pool) > 0 }

func (q *Queue) wait(ctx context.Context, pool string, w Waiter, room func() bool) (time.Duration, error) {
	e := q.entry(pool, w, room)
	began := time.Now()
	if err := q.join(e, began); err != nil {
		return 0, err
	}
	q.admit(pool, false) // room may have come before e was there to be told
	var err error
	select {
	case err = <-e.done:
	case <-ctx.Done():
		err = q.leave(e, ctx.Err())
	}
	waited := max(time.Since(began), 1)
	if err == nil {
		q.metrics.waited.Observe(waited.Seconds())
	}
	return waited, err
}

// entry brings what a caller says within bounds.
func (q *Queue) entry(pool string, w Waiter, room func() bool) *entry {
	w.Class = min(max(w.Class, 0), lowestClass)
	w.Bytes = max(w.Bytes, 0)
	if !(w.Weight > 0) {
		w.Weight = 1
	}
	w.Weight = min(max(w.Weight, leastWeight), mostWeight)
	return &entry{Waiter: w, pool: pool, room: room, done: make(chan error, 1)}
}

// join lets e wait, or says why not.
func (q *Queue) join(e *entry, now time.Time) error {
	if last := now.Add(q.config.MaxWait); e.Deadline.IsZero() || e.Deadline.After(last) {
		e.Deadline = last
	}
	if !e.Deadline.After(now) {
		q.metrics.shed[shedDeadline].Inc()
		return ErrWaited
	}
	q.mu.Lock()
	out, ok := q.order.add(e, now)
	q.settle()
	q.mu.Unlock()
	if !ok {
		q.metrics.shed[shedFull].Inc()
		return ErrQueueFull
	}
	q.dismiss(out, shedFull, ErrQueueFull)
	return nil
}

// leave takes e out since its client has gone. Where e was let in at the same moment,
// its turn is another's.
func (q *Queue) leave(e *entry, cause error) error {
	q.mu.Lock()
	waited := q.order.drop(e)
	q.settle()
	q.mu.Unlock()
	if !waited {
		if err := <-e.done; err != nil {
			return err
		}
		q.mu.Lock()
		q.order.booked(e.pool)
		q.mu.Unlock()
		q.admit(e.pool, true)
	}
	q.gone(cause)
	return cause
}

func (q *Queue) gone(cause error) {
	reason := shedClientGone
	if errors.Is(cause, context.DeadlineExceeded) {
		reason = shedDeadline
	}
	q.metrics.shed[reason].Inc()
}

// dismiss tells those who were taken out of the order why.
func (q *Queue) dismiss(out []*entry, reason shed, err error) {
	for _, e := range out {
		q.metrics.shed[reason].Inc()
		e.done <- err
	}
}

// admit lets in the first who waits for the pool, where there is room. Unless a
// request has ended it holds back while one who was let in isn't booked.
func (q *Queue) admit(pool string, ended bool) {
	for {
		q.mu.Lock()
		now := time.Now()
		late := q.order.expire(now)
		var e *entry
		if ended || !q.order.held(pool, now) {
			e = q.order.first(pool, now)
		}
		q.settle()
		q.mu.Unlock()
		q.dismiss(late, shedDeadline, ErrWaited)
		if e == nil || !e.room() {
			return
		}
		q.mu.Lock()
		took := q.order.take(e, now)
		q.settle()
		q.mu.Unlock()
		if took {
			e.done <- nil
			return
		}
		// Another was faster, or its client left: the room is the next one's.
	}
}

// settle brings what is seen from outside up to the order, and lets the timer run
// while someone waits. q.mu is held.
func (q *Queue) settle() {
	n := q.order.waiting
	q.waiting.Store(int64(n))
	for c, gauge := range q.metrics.waiting {
		gauge.Set(float64(q.order.byClass[c]))
	}
	switch {
	case n > 0 && !q.running:
		q.running = true
		if q.timer == nil {
			q.timer = time.AfterFunc(pollRoomEvery, q.poll)
		} else {
			q.timer.Reset(pollRoomEvery)
		}
	case n == 0 && q.running && q.timer.Stop():
		q.running = false // else poll runs, and finds nobody
	}
}

// poll looks at every pool: deadlines pass, and other nodes make room.
func (q *Queue) poll() {
	q.mu.Lock()
	pools := make([]string, 0, len(q.order.lines))
	for pool := range q.order.lines {
		pools = append(pools, pool)
	}
	q.mu.Unlock()
	for _, pool := range pools {
		q.admit(pool, false)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running = q.order.waiting > 0; q.running {
		q.timer.Reset(pollRoomEvery)
	}
}
