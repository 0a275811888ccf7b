package blockmap

import (
	"time"

	"kvca/state"
)

// Learn records that s, in generation gen, holds every block of chain, refreshes
// what is known of it already, and tells what that has changed. It does nothing
// if gen is not the current generation of s.
//
// The chain is linked from its leaf to its root, so that the root is the most
// recent: eviction takes leaves first, and what a backend holds stays closed
// under prefixes. That is also why a long chain is worked in pieces from its
// end: until the last piece is in, the chain is not known from its root.
func (m *Map) Learn(s state.Slot, gen uint64, chain []uint64, now time.Duration) News {
	st := m.slots.make(s)
	chain = chain[:m.bound(st, len(chain))]
	news := News{First: len(chain), Len: len(chain), OK: st.generation.Load() == gen}
	for hi := len(chain); hi > 0; {
		lo := (hi - 1) / m.piece * m.piece
		if !m.learnPiece(s, gen, chain, lo, hi, ticks(now), &news) {
			return News{Added: news.Added}
		}
		hi = lo
	}
	return news
}

// bound is how many of n blocks of a chain are worth recording: what is beyond
// would only be evicted by the rest.
func (m *Map) bound(st *slotState, n int) int {
	n = min(n, m.capacity())
	if mirror := st.mirror.Load(); mirror > 0 {
		n = min(n, int(mirror))
	}
	return n
}

// learnPiece learns chain[lo:hi] in one hold of the lock; it returns false when
// the rest is not to be learned.
func (m *Map) learnPiece(s state.Slot, gen uint64, chain []uint64, lo, hi int, now uint64, news *News) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := m.slots.get(s)
	if st.generation.Load() != gen {
		return false
	}
	inc := m.current(s, st)
	if inc == 0 {
		return false
	}
	m.clock = max(m.clock, now)
	m.makeRoom(hi-lo, uint32(now))

	in := m.incs.at(uint32(inc))
	l := learner{inc: inc, now: uint32(now), deadline: m.deadline(in, uint32(now))}
	if lo > 0 {
		l.parent = m.lookup(chain[lo-1])
	}
	m.learnBlocks(&l, chain[lo:hi])
	if hi < len(chain) {
		m.adoptOrphan(m.lookup(chain[hi]), l.parent)
	} else {
		news.Idle = time.Duration(l.idle) << tickBits
	}
	if l.added > 0 {
		news.Added += l.added
		news.First = lo + l.known
	}
	m.trim(st, in, 2*m.piece)
	m.publish(in)
	return true
}

// learner is the state of learnPiece along its way from root to leaf.
type learner struct {
	inc      uint16
	now      uint32
	deadline uint32
	parent   uint32 // the block before, 0 at the root
	added    int
	known    int              // blocks before the first that was added
	idle     uint32           // of the last block
	path     [maxPiece]uint32 // the locations so far
}

// deadline of what is learned now. The list is ordered by deadline, so where a
// caller has read the clock before another one that came first, it gets the
// other's.
func (m *Map) deadline(in *incarnation, now uint32) uint32 {
	deadline := now + m.ttl
	if in.newest != 0 {
		if newest := m.entries.at(in.newest).deadline; before(deadline, newest) {
			return newest
		}
	}
	return deadline
}

// learnBlocks finds or adds the locations from the root on, where each block
// has its parent at hand, then links them from the leaf on.
func (m *Map) learnBlocks(l *learner, chain []uint64) {
	warmed := 1
	for i, hash := range chain {
		last := l.parent
		l.path[i] = m.learnBlock(l, hash)
		if l.added == 0 {
			l.known = i + 1
		}
		if i >= warmed && (l.parent != last+1 || l.added > 0) {
			m.touched += m.warm(chain[i+1:])
			warmed = i + warmGroup
		}
	}
	l.idle = m.idle(m.entries.at(l.path[len(chain)-1]).deadline, l.now)
	for i := len(chain) - 1; i >= 0; i-- {
		m.touch(l.path[i], l.deadline)
	}
}

// learnBlock returns the location of the block, added if need be.
func (m *Map) learnBlock(l *learner, hash uint64) (location uint32) {
	b := m.follow(l.parent, hash)
	if b == 0 {
		l.added++
		l.parent = m.addBlock(hash, l.parent, l.inc, l.deadline)
		return l.parent
	}
	m.adoptOrphan(b, l.parent)
	l.parent = b
	location = m.find(b, l.inc)
	if location == 0 {
		l.added++
		return m.addFurther(b, l.inc, l.deadline)
	}
	if expired(m.entries.at(location).deadline, l.now) {
		l.added++
	}
	return location
}

// adoptOrphan makes a block known before its parent, or whose parent was
// removed before it, a child of it. Its holders need not be the parent's.
func (m *Map) adoptOrphan(b, parent uint32) {
	if b == 0 || parent == 0 || m.parent(m.entries.at(b)) != 0 {
		return
	}
	m.adopt(b, parent)
	m.entries.at(parent).version |= ragged
}

// makeRoom evicts until n locations can be added: the void ones first, then the
// soonest to expire.
func (m *Map) makeRoom(n int, now uint32) {
	for k := 0; m.capacity()-m.locations < n; k++ {
		if m.reclaim(1) > 0 {
			continue
		}
		in, i := m.due()
		if k%warmGroup == 0 {
			m.touched += m.warmOldest(in)
		}
		if expired(m.entries.at(i).deadline, now) {
			m.expired++
		} else {
			m.evicted++
		}
		m.remove(i)
	}
}
