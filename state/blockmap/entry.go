package blockmap

// entry is one location. The first location of a block also carries the block;
// further ones refer to it. So there are exactly as many entries as locations,
// one pool serves both, and removing any location frees one entry. 40 bytes;
// with its bucket in the index, a location takes 44.
type entry struct {
	// hash is the block's. In a further location: the low half is its key in
	// the index, the high half the previous further location of the block.
	hash   uint64
	chain  uint32 // next entry of the same bucket
	parent uint32 // the block before this one, 0 if none is known; in a further location: its block
	more   uint32 // next further location of the block
	// older and newer link the locations of one incarnation, least recently
	// used first, which is also by deadline.
	older, newer uint32
	deadline     uint32
	inc          uint16 // incarnation whose location this is
	count        uint16 // locations of the block; 0 in a further location and in a free entry
	fan          uint16 // blocks whose parent is this one; stays at maxFan once there
	// version distinguishes the blocks that this entry has carried while others
	// called it their parent; its top bit is the ragged mark.
	version       uint8
	parentVersion uint8
}

const (
	maxFan = 1<<16 - 1
	// ragged marks a block whose locations may lack one that a child of it
	// has, since Forget took it. A walk visits such a block in any case.
	ragged = 1 << 7
)

// furtherKey is where the index keeps the further location of a block for an
// incarnation.
func furtherKey(hash uint64, inc uint16) uint32 {
	return uint32(hash) ^ (uint32(inc)+1)*0x9E3779B1
}

func (e *entry) previous() uint32 { return uint32(e.hash >> 32) }

func (e *entry) setPrevious(i uint32) { e.hash = e.hash&(1<<32-1) | uint64(i)<<32 }

// links tells index.grow about entry i.
func (m *Map) links(i uint32) (uint32, *uint32) {
	e := m.entries.at(i)
	return uint32(e.hash), &e.chain
}

// lookup returns the block of that hash, 0 if it is unknown.
func (m *Map) lookup(hash uint64) uint32 {
	for i := *m.index.head(uint32(hash)); i != 0; {
		e := m.entries.at(i)
		if e.hash == hash && e.count != 0 {
			return i
		}
		i = e.chain
	}
	return 0
}

// follow is lookup for the block that comes after the one in entry last. Blocks
// learned together nearly always got entries in a row, also out of the free
// list, and looking there first saves what the index costs: cache misses.
func (m *Map) follow(last uint32, hash uint64) uint32 {
	if i := last + 1; i < m.entries.used {
		if e := m.entries.at(i); e.hash == hash && e.count != 0 {
			return i
		}
	}
	return m.lookup(hash)
}

// find returns the location of block b for an incarnation, 0 if there is none.
func (m *Map) find(b uint32, inc uint16) uint32 {
	e := m.entries.at(b)
	if e.inc == inc {
		return b
	}
	if e.count == 1 {
		return 0
	}
	for i := *m.index.head(furtherKey(e.hash, inc)); i != 0; {
		f := m.entries.at(i)
		if f.count == 0 && f.parent == b && f.inc == inc {
			return i
		}
		i = f.chain
	}
	return 0
}

// take returns an unused entry; makeRoom has seen to it that there is one.
func (m *Map) take() uint32 {
	m.locations++
	if i := m.free; i != 0 {
		m.free = m.entries.at(i).newer
		return i
	}
	i := m.entries.fresh()
	m.index.grow(m.links)
	return i
}

func (m *Map) release(i uint32) {
	e := m.entries.at(i)
	*e = entry{newer: m.free, version: e.version &^ ragged}
	m.free = i
	m.locations--
}

func (m *Map) indexAdd(i uint32, e *entry) {
	head := m.index.head(uint32(e.hash))
	e.chain, *head = *head, i
}

func (m *Map) indexRemove(i uint32, e *entry) {
	link := m.index.head(uint32(e.hash))
	for *link != i {
		link = &m.entries.at(*link).chain
	}
	*link = e.chain
}

// addBlock adds an unknown block with its first location.
func (m *Map) addBlock(hash uint64, parent uint32, inc uint16, deadline uint32) uint32 {
	i := m.take()
	e := m.entries.at(i)
	*e = entry{hash: hash, deadline: deadline, inc: inc, count: 1, version: e.version}
	m.indexAdd(i, e)
	m.adopt(i, parent)
	m.append(i, e)
	m.blocks++
	return i
}

// addFurther adds a location to a known block.
func (m *Map) addFurther(b uint32, inc uint16, deadline uint32) uint32 {
	i := m.take()
	e, block := m.entries.at(i), m.entries.at(b)
	*e = entry{
		hash: uint64(furtherKey(block.hash, inc)), parent: b, more: block.more,
		deadline: deadline, inc: inc, version: e.version,
	}
	if e.more != 0 {
		m.entries.at(e.more).setPrevious(i)
	}
	block.more = i
	block.count++
	m.indexAdd(i, e)
	m.append(i, e)
	return i
}

// remove takes one location out, and its block with the last one.
func (m *Map) remove(i uint32) {
	e := m.entries.at(i)
	inc := e.inc
	m.unlink(e)
	switch {
	case e.count == 0:
		m.removeFurther(i, e)
	case e.count == 1:
		m.removeBlock(i, e)
	default:
		m.promote(i, e)
	}
	m.settle(inc)
}

func (m *Map) removeFurther(i uint32, e *entry) {
	if e.more != 0 {
		m.entries.at(e.more).setPrevious(e.previous())
	}
	block := m.entries.at(e.parent)
	if p := e.previous(); p != 0 {
		m.entries.at(p).more = e.more
	} else {
		block.more = e.more
	}
	block.count--
	m.indexRemove(i, e)
	m.release(i)
}

// promote puts a further location of block b in the place of its first one.
func (m *Map) promote(b uint32, block *entry) {
	i := block.more
	e := m.entries.at(i)
	block.older, block.newer, block.deadline, block.inc = e.older, e.newer, e.deadline, e.inc
	m.relink(b, block)
	m.removeFurther(i, e)
}

func (m *Map) removeBlock(i uint32, e *entry) {
	if p := m.parent(e); p != 0 {
		if parent := m.entries.at(p); parent.fan < maxFan {
			parent.fan--
		}
	}
	if e.fan > 0 {
		// Children outlive it: they must not take the entry's next block for
		// their parent.
		e.version = (e.version + 1) &^ ragged
	}
	m.indexRemove(i, e)
	m.release(i)
	m.blocks--
}

// parent returns the block before e, 0 if it is unknown or has been removed.
func (m *Map) parent(e *entry) uint32 {
	if e.parent == 0 {
		return 0
	}
	p := m.entries.at(e.parent)
	if p.count == 0 || p.version&^ragged != e.parentVersion {
		return 0
	}
	return e.parent
}

// adopt makes block b a child of parent, unless it is some block's child already.
func (m *Map) adopt(b, parent uint32) {
	e := m.entries.at(b)
	if parent == 0 || parent == b || m.parent(e) != 0 {
		return
	}
	p := m.entries.at(parent)
	e.parent, e.parentVersion = parent, p.version&^ragged
	if p.fan < maxFan {
		p.fan++
	}
}
