package blockmap

// What is merged has its place among the backend's locations by its deadline, and
// that place is looked for nearby only, since the list may be as long as the map.
// Where it isn't found, a place is taken that is newer than those of the blocks
// after it, and the list is loose from then on until it is empty: it is in no
// strict order of deadlines. Then the soonest to expire may be behind one that
// is later, so vacuum and eviction find it later than they should, by as much
// as the two differ. Nothing is believed in past its deadline for that.

// maxSteps bounds each search for a place, so that it takes microseconds.
const maxSteps = 64

// insert links entry i beside entry at, on the newer side; at the oldest end
// for 0.
func (m *Map) insert(i uint32, e *entry, at uint32) {
	in := m.incs.at(uint32(e.inc))
	if at == in.newest {
		m.append(i, e)
		return
	}
	e.older = at
	if at == 0 {
		e.newer, in.oldest = in.oldest, i
		m.soonest.lower(&m.incs, e.inc, e.deadline)
	} else {
		x := m.entries.at(at)
		e.newer, x.newer = x.newer, i
	}
	m.entries.at(e.newer).older = i
	in.count++
}

// move links entry i, which is in the list, beside entry at.
func (m *Map) move(i uint32, e *entry, at uint32) {
	if i == at || e.older == at {
		return
	}
	m.unlink(e)
	m.insert(i, e, at)
}

// recent returns the entry beside which a location with that deadline is the
// most recent of those that aren't later. In a loose list that is the newest
// entry: what is moved there is surely newer than the blocks after it, and news
// is hardly older than what is learned here.
func (m *Map) recent(in *incarnation, deadline uint32) (at uint32) {
	if in.loose {
		return in.newest
	}
	at, found := m.fromNewest(in, deadline)
	if found {
		return at
	}
	if before(deadline, m.entries.at(in.oldest).deadline) {
		return 0
	}
	in.loose = true
	return in.newest
}

// beside returns the entry beside which a location with that deadline belongs
// if it has to be older than the one of its parent, which is no sooner to
// expire; parent may be 0.
func (m *Map) beside(in *incarnation, deadline, parent uint32) (at uint32) {
	if in.oldest == 0 || !before(m.entries.at(in.oldest).deadline, deadline) {
		return 0
	}
	found := false
	if parent == 0 {
		at, found = m.fromNewest(in, deadline)
	} else {
		at, found = m.search(m.entries.at(parent).older, deadline)
	}
	if found {
		return at
	}
	if at, found = m.fromOldest(in, deadline); found {
		return at
	}
	in.loose = true
	if parent != 0 {
		return m.entries.at(parent).older
	}
	return at
}

func (m *Map) fromNewest(in *incarnation, deadline uint32) (at uint32, found bool) {
	if in.newest == 0 {
		return 0, true
	}
	return m.search(in.newest, deadline)
}

// search goes from entry i towards the oldest until one is not later than
// deadline.
func (m *Map) search(i, deadline uint32) (at uint32, found bool) {
	for range m.steps {
		if i == 0 {
			return at, false
		}
		e := m.entries.at(i)
		if !before(deadline, e.deadline) {
			return i, true
		}
		at, i = i, e.older
	}
	return at, false
}

// fromOldest goes from the oldest entry, which is sooner than deadline, towards
// the newest while the next one is sooner too.
func (m *Map) fromOldest(in *incarnation, deadline uint32) (at uint32, found bool) {
	at = in.oldest
	for range m.steps {
		next := m.entries.at(at).newer
		if next == 0 || !before(m.entries.at(next).deadline, deadline) {
			return at, true
		}
		at = next
	}
	return at, false
}
