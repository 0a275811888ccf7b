package tenant

import (
	"math"
	"time"
)

const (
	classes = lowestClass + 1
	// maxGiveWay is how many a request may make lose their place.
	maxGiveWay = 8
	// settleTime is how long one that was let in counts as about to be booked.
	settleTime = 100 * time.Millisecond
)

// entry is one request that waits.
type entry struct {
	Waiter
	pool  string
	since time.Time
	seq   uint64 // in the order of arrival

	tally      *int   // how many of its tenant wait
	turns      *turns // where it waits, nil once it doesn't
	flow       *flow
	prev, next *entry

	// The shell's; the order does not look at them. Who waits here is known by its id,
	// and is called where it waits for its turn at this node; there it is the waiter.
	// Others are known by their node and their id there.
	room   Room
	done   chan error
	id     uint64
	node   string
	called *entry
	waiter *entry
}

// order decides who is next and who gives way: a state machine without a clock. It is
// not for concurrent use.
type order struct {
	maxWaiting int
	maxBytes   int64
	aging      time.Duration // from then on an entry is of class 0

	lines   map[string]*line // by pool; those in which someone waits
	tenants map[string]*int  // how many wait, over all pools
	byClass [classes]int     // how many wait, by the class they came with
	waiting int
	bytes   int64
	seq     uint64
	soonest time.Time // no deadline is earlier
	heads   []*flow   // scratch
}

// line is what waits for one pool.
type line struct {
	class   [classes]turns
	waiting int
	ages    time.Time // nobody moves to class 0 before
	// coming is how many were let in and aren't booked yet, came when the last was.
	coming int
	came   time.Time
}

func newOrder(maxWaiting int, maxBytes int64, aging time.Duration) *order {
	return &order{
		maxWaiting: maxWaiting, maxBytes: maxBytes, aging: aging,
		lines: make(map[string]*line), tenants: make(map[string]*int),
	}
}

// inLine is how many wait for the pool.
func (o *order) inLine(pool string) int {
	if l := o.lines[pool]; l != nil {
		return l.waiting
	}
	return 0
}

// add lets e wait, which does so since e.since. Where there is no place it returns who
// gives way, or false where that is e itself; then nothing has changed.
func (o *order) add(e *entry) (out []*entry, ok bool) {
	if e.Bytes > o.maxBytes {
		return nil, false
	}
	o.seq++
	e.seq = o.seq
	o.insert(e)
	for o.waiting > o.maxWaiting || o.bytes > o.maxBytes {
		v := o.least()
		if v == e || len(out) == maxGiveWay {
			o.remove(e)
			for _, v := range out {
				o.insert(v)
			}
			return nil, false
		}
		o.remove(v)
		out = append(out, v)
	}
	return out, true
}

// least is who gives way first: of the worst class, of the tenant with most waiters,
// the newest.
func (o *order) least() (worst *entry) {
	class, most := -1, 0
	for _, l := range o.lines {
		for c := classes - 1; c >= max(class, 0); c-- {
			for _, f := range l.class[c].busy {
				n := *f.last.tally
				if c > class || n > most || n == most && f.last.seq > worst.seq {
					class, most, worst = c, n, f.last
				}
			}
		}
	}
	return worst
}

// first is who is next for the pool, nil where nobody waits.
func (o *order) first(pool string, now time.Time) *entry {
	l := o.lines[pool]
	if l == nil {
		return nil
	}
	o.age(l, now)
	for c := range l.class {
		if e := l.class[c].next(); e != nil {
			return e
		}
	}
	return nil
}

// age moves who has waited long to class 0.
func (o *order) age(l *line, now time.Time) {
	if now.Before(l.ages) {
		return
	}
	l.ages = now.Add(o.aging)
	for c := 1; c < classes; c++ {
		t := &l.class[c]
		o.heads = append(o.heads[:0], t.busy...) // the heap changes below
		for _, f := range o.heads {
			for f.first != nil && now.Sub(f.first.since) >= o.aging {
				e := f.first
				t.remove(e)
				l.class[0].insert(e)
			}
			if f.first != nil {
				l.ages = earlier(l.ages, f.first.since.Add(o.aging))
			}
		}
	}
}

// take lets e in and charges its tenant. It is false where e no longer waits.
func (o *order) take(e *entry, now time.Time) bool {
	if e.turns == nil {
		return false
	}
	e.turns.charge(e)
	l := o.lines[e.pool]
	l.coming++
	l.came = now
	o.remove(e)
	return true
}

// drop takes e out without a turn. It is false where e no longer waits.
func (o *order) drop(e *entry) bool {
	if e.turns == nil {
		return false
	}
	o.remove(e)
	return true
}

// expire takes out whose deadline has passed.
func (o *order) expire(now time.Time) (late []*entry) {
	if o.waiting == 0 || now.Before(o.soonest) {
		return nil
	}
	o.soonest = now.Add(math.MaxInt64)
	for _, l := range o.lines {
		for c := range l.class {
			for _, f := range l.class[c].busy {
				for e := f.first; e != nil; e = e.next {
					if !e.Deadline.After(now) {
						late = append(late, e)
					} else {
						o.soonest = earlier(o.soonest, e.Deadline)
					}
				}
			}
		}
	}
	for _, e := range late {
		o.remove(e)
	}
	return late
}

// entering is how many were let in that the pool's room can't be trusted to show yet.
func (o *order) entering(pool string, now time.Time) int {
	l := o.lines[pool]
	if l == nil {
		return 0
	}
	if now.Sub(l.came) >= settleTime {
		l.coming = 0 // nobody will say that they are booked
	}
	return l.coming
}

// booked is told of one that was let in and now shows in the pool's room.
func (o *order) booked(pool string) {
	if l := o.lines[pool]; l != nil && l.coming > 0 {
		l.coming--
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (o *order) insert(e *entry) {
	l := o.lines[e.pool]
	if l == nil {
		l = &line{ages: e.since.Add(o.aging)}
		o.lines[e.pool] = l
	}
	l.ages = earlier(l.ages, e.since.Add(o.aging))
	l.waiting++
	l.class[e.Class].insert(e)
	if o.waiting == 0 {
		o.soonest = e.Deadline
	}
	o.soonest = earlier(o.soonest, e.Deadline)
	o.waiting++
	o.bytes += e.Bytes
	o.byClass[e.Class]++
	if e.tally = o.tenants[e.Tenant]; e.tally == nil {
		e.tally = new(int)
		o.tenants[e.Tenant] = e.tally
	}
	*e.tally++
}

func (o *order) remove(e *entry) {
	e.turns.remove(e)
	o.waiting--
	o.bytes -= e.Bytes
	o.byClass[e.Class]--
	if *e.tally--; *e.tally == 0 {
		delete(o.tenants, e.Tenant)
	}
	l := o.lines[e.pool]
	if l.waiting--; l.waiting == 0 {
		delete(o.lines, e.pool) // and with it who owes whom: nobody is in need any more
	}
}
