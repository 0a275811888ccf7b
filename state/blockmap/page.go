package blockmap

import (
	"time"

	"kvca/state"
)

const (
	// pagePiece is how many locations are looked at for each hold of the lock.
	pagePiece = 128
	// A cursor remembers marks at least this far apart, so that one chain that
	// is refreshed meanwhile rarely takes them all.
	markDistance = 256
	marks        = 8
	// maxRestarts ends a paging whose marks have all moved that often.
	maxRestarts = 16
)

// Cursor is where a paging of one slot's locations stands. The zero Cursor is
// before the newest one.
type Cursor struct {
	marks    [marks]pageMark // places passed, in this order
	n        int
	seen     int    // locations looked at
	soonest  uint32 // deadline so far
	resuming bool   // passing again what is later than soonest
	restarts int
	inc      uint16
}

// pageMark is a location that has been passed. It still has its place while
// nothing about it has changed.
type pageMark struct {
	entry    uint32
	deadline uint32
	hash     uint64
	seen     int
}

// pageLine is one location that is told.
type pageLine struct {
	parent, hash uint64
	idle         time.Duration
}

// Page tells the next of the locations of s in the given buckets (nil: all) that
// have been used within the horizon, newest first, so that a block comes
// before those after it. It looks at no more than limit locations, and holds
// the read lock for 128 of them at a time and never while it calls emit. done
// means that there are no more.
//
// What is used or removed between two calls may be missed or told twice; the
// rest is told, unless so much is that the paging gives up.
func (m *Map) Page(c *Cursor, s state.Slot, b *Buckets, horizon, now time.Duration, limit int,
	emit func(parent, hash uint64, idle time.Duration),
) (done bool) {
	st := m.slots.get(s)
	if st == nil {
		return true
	}
	t := uint32(ticks(now))
	p := pager{soonest: m.told(horizon, t), now: t, buckets: b}
	for limit > 0 && !done {
		p.n = 0
		n := min(limit, pagePiece)
		done = m.pagePiece(c, st, &p, n)
		for _, l := range p.lines[:p.n] {
			emit(l.parent, l.hash, l.idle)
		}
		limit -= n
	}
	return done
}

// pager is the state of a Page.
type pager struct {
	soonest uint32 // deadline that is told
	now     uint32
	buckets *Buckets
	n       int
	lines   [pagePiece]pageLine
}

func (m *Map) pagePiece(c *Cursor, st *slotState, p *pager, limit int) (done bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if st.inc == 0 || c.inc != 0 && c.inc != st.inc {
		return true // what was begun is void
	}
	c.inc = st.inc
	in := m.incs.at(uint32(st.inc))
	i, ok := m.resume(c, in)
	if !ok {
		return true
	}
	last := uint32(0)
	for ; i != 0 && limit > 0; limit-- {
		e := m.entries.at(i)
		if before(e.deadline, p.soonest) {
			if !in.loose {
				return true
			}
		} else if !c.resuming || !before(c.soonest, e.deadline) {
			m.page(p, e)
		}
		last, i = i, e.older
		c.pass(e.deadline)
	}
	if i == 0 {
		return true
	}
	c.remember(last, m.entries.at(last).deadline, m.hash(m.entries.at(last)))
	return false
}

// page adds a line for a location that is to be told.
func (m *Map) page(p *pager, e *entry) {
	idle := max(int32(p.now-(e.deadline-m.ttl)), 0)
	if e.count == 0 {
		e = m.entries.at(e.parent)
	}
	if p.buckets != nil && !p.buckets.Has(Bucket(e.hash)) {
		return
	}
	l := &p.lines[p.n]
	p.n++
	l.hash, l.parent, l.idle = e.hash, 0, time.Duration(idle)<<tickBits
	if parent := m.parent(e); parent != 0 {
		l.parent = m.entries.at(parent).hash
	}
}

func (c *Cursor) pass(deadline uint32) {
	if c.seen == 0 || before(deadline, c.soonest) {
		c.soonest = deadline
		c.resuming = false
	}
	c.seen++
}

// remember marks the last location passed, instead of the mark before where
// that is near the one before it.
func (c *Cursor) remember(i, deadline uint32, hash uint64) {
	switch {
	case c.n >= 2 && c.marks[c.n-1].seen-c.marks[c.n-2].seen < markDistance:
		c.n--
	case c.n == marks:
		copy(c.marks[:], c.marks[1:])
		c.n--
	}
	c.marks[c.n] = pageMark{entry: i, deadline: deadline, hash: hash, seen: c.seen}
	c.n++
}

// resume returns the location to go on with: after the last mark that has its
// place still, else the newest one, where what was told already is passed.
func (m *Map) resume(c *Cursor, in *incarnation) (i uint32, ok bool) {
	if c.seen == 0 {
		return in.newest, true
	}
	for ; c.n > 0; c.n-- {
		k := &c.marks[c.n-1]
		if e := m.entries.at(k.entry); e.inc == c.inc && e.deadline == k.deadline && m.hash(e) == k.hash {
			return e.older, true
		}
		c.resuming = true
	}
	c.restarts++
	return in.newest, c.restarts <= maxRestarts
}
