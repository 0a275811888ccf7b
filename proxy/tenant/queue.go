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
	// Backends tells the set of backends apart that it waits for, 0 for any: a node that
	// knows others under the pool's name does not call for it.
	Backends uint64
	// Deadline is when it may wait no longer, zero for MaxWait from now.
	Deadline time.Time
}

// Room is how many requests more a pool takes. It is called by whoever looks for the
// next, from any goroutine, a moment after its request's Enter has returned even; it
// must not wait, panic or call the queue.
type Room func() int

// Queue lets requests in as their pool has room.
type Queue struct {
	config  QueueConfig
	metrics *queueMetrics
	// concerned is how many wait here, and are called from here, and how many pools
	// others call for: 0 where nothing needs to be looked at. waiting is the first.
	concerned, waiting atomic.Int64

	mu      sync.Mutex
	order   *order // who waits here: who gives way, and who has waited too long
	calls   *order // who is next in the pools that are called from here
	timer   *time.Timer
	running bool // the timer, or what it calls
	share   share
}

// NewQueue makes a queue of this node's own; reg may be nil. Share makes it one of
// all nodes.
func NewQueue(c QueueConfig, reg prometheus.Registerer) *Queue {
	c = c.withDefaults()
	return &Queue{
		config: c, metrics: newQueueMetrics(reg),
		order: newOrder(c.MaxWaiting, c.MaxBytes, c.MaxWait/2),
		calls: newOrder(c.MaxWaiting+mostCalled, c.MaxBytes, c.MaxWait/2),
		share: newShare(),
	}
}

// Enter returns nil once the request may go on: at once where there is room and nobody
// waits for the pool, on any node, else when its turn has come. Otherwise it returns
// ErrQueueFull, ErrWaited or the context's error. The time is 0 exactly where it didn't
// wait. Who was let in after a wait calls Booked once the room shows it.
func (q *Queue) Enter(ctx context.Context, pool string, w Waiter, room Room) (time.Duration, error) {
	if !q.busy(pool) && room() > 0 {
		return 0, nil
	}
	if err := ctx.Err(); err != nil {
		q.gone(err)
		return 0, err
	}
	return q.wait(ctx, pool, w, room)
}

// Freed is told that a request of the pool has ended. It costs an atomic load where
// nobody waits.
func (q *Queue) Freed(pool string) {
	if q.concerned.Load() > 0 && !q.freedElsewhere(pool) {
		q.admit(pool)
	}
}

// Booked is told that a request which Enter let in after a wait has been booked, or
// has failed to be: from now on the room tells the truth. Without it one slot of the
// pool goes unused for settleTime.
func (q *Queue) Booked(pool string) {
	if q.concerned.Load() == 0 || q.bookedElsewhere(pool) {
		return
	}
	q.bookedHere(pool)
}

func (q *Queue) bookedHere(pool string) {
	q.mu.Lock()
	q.calls.booked(pool)
	q.mu.Unlock()
	q.admit(pool)
}

// WaitingAll is how many wait here, over all pools.
func (q *Queue) WaitingAll() int64 { return q.waiting.Load() }

// Waiting is how many wait here for the pool.
func (q *Queue) Waiting(pool string) int {
	if q.waiting.Load() == 0 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.inLine(pool)
}

// busy is whether somebody waits for the pool, on any node.
func (q *Queue) busy(pool string) bool {
	if q.concerned.Load() == 0 {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.inLine(pool) > 0 || q.calls.inLine(pool) > 0 || q.share.isCrowded(pool, time.Now())
}

func (q *Queue) wait(ctx context.Context, pool string, w Waiter, room Room) (time.Duration, error) {
	e := q.entry(pool, w, room)
	began := time.Now()
	if err := q.join(e, began); err != nil {
		return 0, err
	}
	q.admit(pool) // room may have come before e was there to be told
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
func (q *Queue) entry(pool string, w Waiter, room Room) *entry {
	w.Bytes = max(w.Bytes, 0)
	return &entry{Waiter: w.within(), pool: pool, room: room, done: make(chan error, 1)}
}

func (w Waiter) within() Waiter {
	w.Class = min(max(w.Class, 0), lowestClass)
	if !(w.Weight > 0) {
		w.Weight = 1
	}
	w.Weight = min(max(w.Weight, leastWeight), mostWeight)
	return w
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
	e.since = now
	out, ok := q.order.add(e)
	for _, e := range out {
		q.withdraw(e)
	}
	if ok {
		q.put(e, now)
	}
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
	if waited {
		q.withdraw(e)
	}
	q.settle()
	q.mu.Unlock()
	if !waited {
		if err := <-e.done; err != nil {
			return err
		}
		q.Booked(e.pool)
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

// admit lets in who is next in a pool, unless that is for the next look to do.
func (q *Queue) admit(pool string) {
	if !q.isApart(pool) {
		q.look(pool)
	}
}

// look lets in who is next in a pool that is called from here, as far as there is
// room. Those who were let in and don't show in it yet have theirs already.
func (q *Queue) look(pool string) {
	for {
		q.mu.Lock()
		now := time.Now()
		late := q.order.expire(now)
		for _, e := range late {
			q.withdraw(e)
		}
		q.forgetLate(now)
		e := q.calls.first(pool, now)
		entering := q.calls.entering(pool, now)
		q.settle()
		q.mu.Unlock()
		q.dismiss(late, shedDeadline, ErrWaited)
		if e == nil || e.room() <= entering {
			return
		}
		q.mu.Lock()
		if q.calls.take(e, now) { // else another was faster, or its client left
			q.letIn(e)
		}
		q.settle()
		q.mu.Unlock()
	}
}

// letIn tells e, which the order of calls has let in, that its turn has come. q.mu is
// held.
func (q *Queue) letIn(e *entry) {
	if e.waiter != nil {
		q.metrics.turns[turnOwn].Inc()
		q.release(e.waiter)
		return
	}
	q.callElsewhere(e)
}

// settle brings what is seen from outside up to the order, and lets the timer run
// while someone waits. q.mu is held.
func (q *Queue) settle() {
	n := q.order.waiting + q.calls.waiting
	q.waiting.Store(int64(q.order.waiting))
	q.concerned.Store(int64(n + len(q.share.crowded)))
	for c, gauge := range q.metrics.waiting {
		gauge.Set(float64(q.order.byClass[c]))
	}
	n += len(q.share.announced)
	switch {
	case n > 0 && !q.running:
		q.running = true
		if q.timer == nil {
			q.timer = time.AfterFunc(q.share.pollEvery(), q.poll)
		} else {
			q.timer.Reset(q.share.pollEvery())
		}
	case n == 0 && q.running && q.timer.Stop():
		q.running = false // else poll runs, and finds nobody
	}
}

// poll looks at every pool: deadlines pass, other nodes make room, and callers change.
func (q *Queue) poll() {
	q.mu.Lock()
	now := time.Now()
	q.tend(now)
	pools := make([]string, 0, len(q.calls.lines)+1)
	for pool := range q.calls.lines {
		pools = append(pools, pool)
	}
	q.mu.Unlock()
	for _, pool := range append(pools, "") { // one at least: who has waited too long is found there
		q.look(pool)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.announce(time.Now())
	if q.running = q.order.waiting+q.calls.waiting+len(q.share.announced) > 0; q.running {
		q.timer.Reset(q.share.pollEvery())
	}
}
