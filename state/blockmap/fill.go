package blockmap

// fill merges repair, in pieces from the root on, so that each block finds the
// place of its parent.
func (m *Map) fill(g *merger, r Run) {
	n := m.bound(g.st, len(r.Hashes))
	for lo := 0; lo < n; lo += m.piece {
		if !m.fillPiece(g, r, lo, min(n, lo+m.piece)) {
			return
		}
	}
}

// fillPiece inserts what is missing of a run's blocks lo to hi in one hold of
// the lock. It returns false when the rest is not to be inserted.
func (m *Map) fillPiece(g *merger, r Run, lo, hi int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begin(g) {
		return false
	}
	if lo == 0 {
		m.enter(g, m.blockBefore(r))
	} else {
		m.enter(g, m.lookup(r.Hashes[lo-1]))
	}
	more := true
	for i, hash := range r.Hashes[lo:hi] {
		if i%warmGroup == 0 {
			m.touched += m.warm(r.Hashes[lo+i : hi])
			m.touched += m.warmGrowth()
		}
		if more = m.fillBlock(g, hash); !more {
			break
		}
	}
	m.trim(g.st, g.in, 2*m.piece)
	m.publish(g.in)
	return more
}

// fillBlock tells whether the slot has a location of the block now.
func (m *Map) fillBlock(g *merger, hash uint64) bool {
	b := m.follow(g.parent, hash)
	location := uint32(0)
	if b != 0 {
		m.adoptOrphan(b, g.parent)
		location = m.find(b, g.inc)
	}
	if location == 0 || expired(m.entries.at(location).deadline, uint32(g.now)) {
		if !m.fits(g, location) {
			return false
		}
		location = m.fillLocation(g, hash, b, location)
		if b == 0 {
			b = location
		}
	}
	g.pass(b, location)
	return true
}

// fits tells whether there is room for a location. An expired one needs none.
func (m *Map) fits(g *merger, location uint32) bool {
	if location != 0 {
		return true
	}
	if m.locations >= m.capacity()*9/10 {
		return false
	}
	mirror := g.st.mirror.Load()
	return mirror == 0 || g.in.count < mirror || before(m.entries.at(g.in.oldest).deadline, g.deadline)
}

// fillLocation adds a location, or renews the expired one. It doesn't outlive its
// parent, which on the node that tells it has been used as lately: it may only
// have been told by a shorter way.
func (m *Map) fillLocation(g *merger, hash uint64, b, location uint32) uint32 {
	deadline, parent := g.deadline, g.held
	if parent != 0 {
		switch at := m.entries.at(parent).deadline; {
		case expired(at, uint32(g.now)):
			g.gap, parent = true, 0
		case before(at, deadline):
			deadline = at
		}
	}
	m.tear(g)
	at := m.beside(g.in, deadline, parent)
	switch {
	case location != 0:
		m.entries.at(location).deadline = deadline
	case b != 0:
		location = m.addFurther(b, g.inc, deadline)
	default:
		location = m.addBlock(hash, g.parent, g.inc, deadline)
	}
	m.move(location, m.entries.at(location), at)
	g.added++
	return location
}
