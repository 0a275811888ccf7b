package blockmap

import (
	"slices"
	"time"

	"kvca/state"
)

// Run is a path of blocks that one backend holds, as nodes tell each other.
type Run struct {
	// Parent is the block before the first one; 0 for a root, or if unknown.
	Parent uint64
	// Hashes are the blocks, each the child of the one before.
	Hashes []uint64
	// Idle is for how long the blocks have not been used.
	Idle time.Duration
}

// Merge records what another node has told of s, in the local generation gen,
// and returns how many locations are new, those included that had expired. It
// does nothing if gen is not the current generation of s, or if the run has
// expired on its way.
//
// With extend the run is news: the blocks are refreshed, and with them what is
// known of the blocks before them, as when a chain is learned. What is known to be
// fresher stays so. Without extend it is repair: only what is missing is
// inserted and nothing is refreshed, so that time which has grown on the way
// can't go round between nodes for ever; and nothing is inserted for which
// something else would have to go from a map that is 90 % full, or that a full
// mirror would evict at once.
//
// Either way the order and the grouping of runs don't matter for what is held;
// with extend, nor for the deadlines of what was told.
func (m *Map) Merge(s state.Slot, gen uint64, r Run, extend bool, now time.Duration) (added int) {
	idle := uint64(0)
	if r.Idle > 0 { // rounded up: it must not grow younger by being passed on
		idle = (uint64(r.Idle)-1)>>tickBits + 1
	}
	if idle >= uint64(m.ttl) {
		return 0
	}
	g := merger{
		slot: s, st: m.slots.make(s), gen: gen, now: ticks(now),
		deadline: uint32(ticks(now)) + m.ttl - uint32(idle),
	}
	if extend {
		m.extend(&g, r)
	} else {
		m.fill(&g, r)
	}
	return g.added
}

// merger is the state of a Merge.
type merger struct {
	slot     state.Slot
	st       *slotState
	gen      uint64
	now      uint64
	deadline uint32
	added    int

	// Of one hold of the lock:
	inc    uint16
	in     *incarnation
	parent uint32 // the block before, 0 if there is none or it is unknown
	held   uint32 // the slot's location of it
	gap    bool   // the block before is known, and not for this slot
}

// begin follows the taking of the lock and tells whether to go on.
func (m *Map) begin(g *merger) bool {
	if g.st.generation.Load() != g.gen {
		return false
	}
	g.inc = m.current(g.slot, g.st)
	if g.inc == 0 {
		return false
	}
	g.in = m.incs.at(uint32(g.inc))
	m.clock = max(m.clock, g.now)
	return true
}

// pass makes block b, of which the slot has location held, the block before.
func (g *merger) pass(b, held uint32) {
	g.parent, g.held, g.gap = b, held, b != 0 && held == 0
}

// enter makes block b the block before.
func (m *Map) enter(g *merger, b uint32) {
	held := uint32(0)
	if b != 0 {
		held = m.find(b, g.inc)
	}
	g.pass(b, held)
}

// tear marks the block before where what comes after it has a location that it
// lacks, so that walks don't infer its holders.
func (m *Map) tear(g *merger) {
	if g.gap {
		m.entries.at(g.parent).version |= ragged
	}
}

// blockBefore returns the block before a run, 0 if it is unknown.
func (m *Map) blockBefore(r Run) uint32 {
	if r.Parent != 0 {
		if b := m.lookup(r.Parent); b != 0 {
			return b
		}
	}
	if len(r.Hashes) > 0 {
		if b := m.lookup(r.Hashes[0]); b != 0 {
			return m.parent(m.entries.at(b))
		}
	}
	return 0
}

// ancestors appends the known blocks before a run, from the root on.
func (m *Map) ancestors(path []uint64, r Run) []uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	seen, turn := uint64(0), 1
	for b := m.blockBefore(r); b != 0; {
		e := m.entries.at(b)
		if len(path) > 0 && e.hash == seen {
			break // a chain that repeats a block can lead in a circle
		}
		if path = append(path, e.hash); len(path) == turn {
			seen, turn = e.hash, 2*turn
		}
		b = m.parent(e)
		if b != 0 && len(path)%walkPiece == 0 {
			next := m.entries.at(b).hash
			m.mu.RUnlock()
			m.mu.RLock()
			b = m.lookup(next)
		}
	}
	slices.Reverse(path)
	return path
}

// extend merges news. The known ancestors and the run are worked as one chain,
// as Learn does: in pieces from its end, each linked from its leaf to its root.
func (m *Map) extend(g *merger, r Run) {
	var scratch [128]uint64
	chain := m.ancestors(scratch[:0], r)
	known := len(chain)
	chain = append(chain, r.Hashes...)
	chain = chain[:m.bound(g.st, len(chain))]
	for hi := len(chain); hi > 0; {
		lo := (hi - 1) / m.piece * m.piece
		if !m.extendPiece(g, chain, min(known, len(chain)), lo, hi) {
			return
		}
		hi = lo
	}
}

// extendPiece merges chain[lo:hi] in one hold of the lock. Of what is before
// known, only the locations that there are get refreshed.
func (m *Map) extendPiece(g *merger, chain []uint64, known, lo, hi int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begin(g) {
		return false
	}
	m.makeRoom(max(0, hi-max(lo, known)), uint32(g.now))
	if g.pass(0, 0); lo > 0 {
		m.enter(g, m.lookup(chain[lo-1]))
		g.gap = g.gap && lo <= known // else the next piece closes it
	}
	at := m.recent(g.in, g.deadline)
	var path [maxPiece]uint32
	warmed := 0
	for i, hash := range chain[lo:hi] {
		if i >= warmed && (lo+i >= known || i > 0 && path[i-1] == 0) {
			m.touched += m.warm(chain[lo+i : hi])
			warmed = i + warmGroup
		}
		path[i] = m.extendBlock(g, hash, lo+i >= known)
	}
	if hi < len(chain) {
		if b := m.lookup(chain[hi]); b != 0 {
			m.adoptOrphan(b, g.parent)
			m.tear(g)
		}
	}
	m.relinkPath(g, path[:hi-lo], at)
	m.trim(g.st, g.in, 2*m.piece)
	m.publish(g.in)
	return true
}

// extendBlock returns the slot's location of a block, 0 if there is none and
// none is to be added.
func (m *Map) extendBlock(g *merger, hash uint64, add bool) (location uint32) {
	b := m.follow(g.parent, hash)
	switch {
	case b != 0:
		m.adoptOrphan(b, g.parent)
		location = m.find(b, g.inc)
		if location != 0 && expired(m.entries.at(location).deadline, uint32(g.now)) {
			g.added++
		}
	case add:
		b = m.addBlock(hash, g.parent, g.inc, g.deadline)
		location = b
		g.added++
	}
	if location == 0 && add {
		location = m.addFurther(b, g.inc, g.deadline)
		g.added++
	}
	if location != 0 {
		m.tear(g)
	}
	g.pass(b, location)
	return location
}

// relinkPath gives the locations of a path the deadline, unless they have a
// later one, and their places: from the leaf on, each newer than the one before.
// In a list in strict order what is later has its place already.
func (m *Map) relinkPath(g *merger, path []uint32, at uint32) {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == 0 {
			continue
		}
		e := m.entries.at(path[i])
		if !before(g.deadline, e.deadline) {
			e.deadline = g.deadline
		} else if !g.in.loose {
			continue
		}
		m.move(path[i], e, at)
		at = path[i]
	}
}
