package blockmap

import (
	"sync/atomic"
	"time"

	"kvca/state"
)

// slotState is what the map knows of one slot. The atomics are read without a
// lock; inc belongs to Map.mu.
type slotState struct {
	generation atomic.Uint64
	// age holds aged and the deadline of the slot's oldest location while its
	// mirror is full, else 0.
	age    atomic.Uint64
	mirror atomic.Uint32
	inc    uint16
}

const (
	pageLen = 256
	aged    = 1 << 32
)

// slots is a table that grows by pages and never moves, so that readers need no lock.
type slots struct {
	pages [1 << 16 / pageLen]atomic.Pointer[[pageLen]slotState]
	top   atomic.Uint32 // highest slot ever used, plus one
}

// get returns nil for a slot that nothing has been said about.
func (t *slots) get(s state.Slot) *slotState {
	page := t.pages[s/pageLen].Load()
	if page == nil {
		return nil
	}
	return &page[s%pageLen]
}

func (t *slots) make(s state.Slot) *slotState {
	for top := t.top.Load(); uint32(s) >= top; top = t.top.Load() {
		t.top.CompareAndSwap(top, uint32(s)+1)
	}
	page := &t.pages[s/pageLen]
	if page.Load() == nil {
		page.CompareAndSwap(nil, new([pageLen]slotState))
	}
	return &page.Load()[s%pageLen]
}

func (t *slots) generation(s state.Slot) uint64 {
	if st := t.get(s); st != nil {
		return st.generation.Load()
	}
	return 0
}

// Void begins a new generation of s: all its locations and tentative ones are
// void at once, whatever their number. Vacuum and Learn take their memory back
// piece by piece. The mirror's bound stays; a new backend in the same slot
// needs its own.
func (m *Map) Void(s state.Slot) {
	st := m.slots.make(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	st.generation.Add(1)
	if st.inc == 0 || m.incs.at(uint32(st.inc)).count == 0 {
		return
	}
	m.bury(st.inc)
	st.inc = 0
	st.age.Store(0)
}

// Generation counts the Voids of s.
func (m *Map) Generation(s state.Slot) uint64 { return m.slots.generation(s) }

// SetMirror bounds the locations of s to its cache's size in blocks; 0 takes
// the bound away. Shrinking evicts the least recently used locations, a piece
// for each hold of the lock.
func (m *Map) SetMirror(s state.Slot, blocks int) {
	st := m.slots.make(s)
	st.mirror.Store(uint32(min(max(blocks, 0), 1<<32-1)))
	for m.shrink(st) {
	}
}

// shrink tells whether there is more to evict.
func (m *Map) shrink(st *slotState) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if st.inc == 0 {
		return false
	}
	in := m.incs.at(uint32(st.inc))
	more := m.trim(st, in, m.piece)
	m.publish(in)
	return more
}

// trim evicts at most limit locations that a live incarnation has beyond its
// mirror, and tells whether there are more.
func (m *Map) trim(st *slotState, in *incarnation, limit int) bool {
	mirror := st.mirror.Load()
	if mirror == 0 {
		return false
	}
	for ; in.count > mirror && limit > 0; limit-- {
		m.remove(in.oldest)
		m.mirrorEvicted++
	}
	return in.count > mirror
}

// publish tells Age about a live incarnation after its oldest location or its
// number of locations has changed.
func (m *Map) publish(in *incarnation) {
	st := m.slots.get(in.slot)
	word := uint64(0)
	if mirror := st.mirror.Load(); mirror > 0 && in.count >= mirror {
		word = aged | uint64(m.entries.at(in.oldest).deadline)
	}
	if st.age.Load() != word {
		st.age.Store(word)
	}
}

// Age tells for how long the block that s would evict next has been idle. full
// is false while the mirror of s has room, or no bound: its age is then
// endless. It takes no lock.
func (m *Map) Age(s state.Slot, now time.Duration) (age time.Duration, full bool) {
	st := m.slots.get(s)
	if st == nil {
		return 0, false
	}
	word := st.age.Load()
	if word == 0 {
		return 0, false
	}
	learned := uint32(word) - m.ttl
	idle := int32(uint32(ticks(now)) - learned)
	return time.Duration(max(idle, 0)) << tickBits, true
}

// Held is the number of locations of s, expired ones that Vacuum has not
// removed included.
func (m *Map) Held(s state.Slot) int {
	st := m.slots.get(s)
	if st == nil {
		return 0
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return int(m.incs.at(uint32(st.inc)).count)
}
