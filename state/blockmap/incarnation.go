package blockmap

import "kvca/state"

// incarnation is a slot between two voids, as far as it has locations. Voiding
// a slot marks its incarnation dead, whatever the number of its locations, and
// queues it; the slot's next location begins another. A number is used again
// when the last location of its dead incarnation has been reclaimed.
type incarnation struct {
	oldest, newest uint32 // its locations, least recently used first
	count          uint32
	key            uint32 // see soonest
	at             uint32 // position in soonest, 0 if it isn't there
	slot           state.Slot
	next           uint16 // next dead or free incarnation
	dead           bool
	loose          bool // see place.go
}

const maxIncarnations = 1 << 16 // the reserved 0 included

// current returns the incarnation of a slot, begun if need be; 0 where there
// are 65,535 already and the dead ones hold so much that reclaiming a piece of
// it has freed none.
func (m *Map) current(s state.Slot, st *slotState) uint16 {
	if st.inc != 0 {
		return st.inc
	}
	if m.freeInc == 0 && m.incs.full() {
		m.reclaim(m.piece)
	}
	id := m.freeInc
	switch {
	case id != 0:
		m.freeInc = m.incs.at(uint32(id)).next
	case m.incs.full():
		return 0
	default:
		id = uint16(m.incs.fresh())
	}
	*m.incs.at(uint32(id)) = incarnation{slot: s}
	st.inc = id
	return id
}

// bury queues an incarnation with locations for reclaiming.
func (m *Map) bury(id uint16) {
	in := m.incs.at(uint32(id))
	in.dead = true
	if m.lastDead != 0 {
		m.incs.at(uint32(m.lastDead)).next = id
	} else {
		m.firstDead = id
	}
	m.lastDead = id
}

// reclaim removes up to n void locations, oldest void first.
func (m *Map) reclaim(n int) (reclaimed int) {
	for reclaimed < n && m.firstDead != 0 {
		in := m.incs.at(uint32(m.firstDead))
		if reclaimed%warmGroup == 0 && n > 1 {
			m.touched += m.warmOldest(in)
		}
		m.remove(in.oldest)
		reclaimed++
	}
	m.voided += uint64(reclaimed)
	return reclaimed
}

// settle follows every removal of a location of an incarnation.
func (m *Map) settle(id uint16) {
	in := m.incs.at(uint32(id))
	if in.count == 0 {
		m.soonest.remove(&m.incs, id)
		in.loose = false
	}
	if !in.dead {
		m.publish(in)
		return
	}
	if in.count > 0 {
		return
	}
	// Only the first of the queue is ever reclaimed.
	m.firstDead = in.next
	if m.firstDead == 0 {
		m.lastDead = 0
	}
	*in = incarnation{next: m.freeInc}
	m.freeInc = id
}
