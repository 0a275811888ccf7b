package blockmap

// append makes entry i the most recently used location of its incarnation.
func (m *Map) append(i uint32, e *entry) {
	in := m.incs.at(uint32(e.inc))
	e.older, e.newer = in.newest, 0
	if in.newest != 0 {
		m.entries.at(in.newest).newer = i
	} else {
		in.oldest = i
	}
	in.newest = i
	in.count++
	if in.at == 0 {
		m.soonest.push(&m.incs, e.inc, e.deadline)
	}
}

// unlink takes e out of its incarnation's list, which it may leave empty:
// settle or append follows.
func (m *Map) unlink(e *entry) {
	in := m.incs.at(uint32(e.inc))
	if e.older != 0 {
		m.entries.at(e.older).newer = e.newer
	} else {
		in.oldest = e.newer
	}
	if e.newer != 0 {
		m.entries.at(e.newer).older = e.older
	} else {
		in.newest = e.older
	}
	in.count--
}

// relink makes e's neighbours in the list point at entry i, where e now is.
func (m *Map) relink(i uint32, e *entry) {
	in := m.incs.at(uint32(e.inc))
	if e.older != 0 {
		m.entries.at(e.older).newer = i
	} else {
		in.oldest = i
	}
	if e.newer != 0 {
		m.entries.at(e.newer).older = i
	} else {
		in.newest = i
	}
}

// touch makes i the most recently used location of its incarnation.
func (m *Map) touch(i uint32, deadline uint32) {
	e := m.entries.at(i)
	if e.newer != 0 {
		m.unlink(e)
		m.append(i, e)
	}
	e.deadline = deadline
}
