package blockmap

// soonest is a heap of the incarnations that have locations, by the deadline of
// the oldest. Its keys are lazy: an incarnation's oldest location is refreshed
// or removed without telling the heap, which can only move the true deadline
// back, and the key is set right when it comes to the top. Position 0 is
// unused, so that incarnation.at is 0 for those outside.
type soonest struct {
	heap []uint16
}

func newSoonest() soonest { return soonest{heap: make([]uint16, 1)} }

func (h *soonest) push(incs *pool[incarnation], id uint16, key uint32) {
	h.heap = append(h.heap, id)
	incs.at(uint32(id)).key = key
	h.up(incs, uint32(len(h.heap)-1))
}

func (h *soonest) remove(incs *pool[incarnation], id uint16) {
	at := incs.at(uint32(id)).at
	last := uint32(len(h.heap) - 1)
	moved := h.heap[last]
	h.heap = h.heap[:last]
	incs.at(uint32(id)).at = 0
	if at == last {
		return
	}
	h.heap[at] = moved
	h.up(incs, at)
	h.down(incs, incs.at(uint32(moved)).at)
}

// lower is for a location that became the oldest with a sooner deadline than
// the one before it had.
func (h *soonest) lower(incs *pool[incarnation], id uint16, key uint32) {
	in := incs.at(uint32(id))
	if before(key, in.key) {
		in.key = key
		h.up(incs, in.at)
	}
}

func (h *soonest) up(incs *pool[incarnation], at uint32) {
	id := h.heap[at]
	in := incs.at(uint32(id))
	for at > 1 {
		above := h.heap[at/2]
		over := incs.at(uint32(above))
		if !before(in.key, over.key) {
			break
		}
		h.heap[at], over.at = above, at
		at /= 2
	}
	h.heap[at], in.at = id, at
}

func (h *soonest) down(incs *pool[incarnation], at uint32) {
	id := h.heap[at]
	in := incs.at(uint32(id))
	for {
		child := h.lesser(incs, 2*at)
		if child == 0 {
			break
		}
		below := h.heap[child]
		under := incs.at(uint32(below))
		if !before(under.key, in.key) {
			break
		}
		h.heap[at], under.at = below, at
		at = child
	}
	h.heap[at], in.at = id, at
}

// lesser returns the one of positions at and at+1 that has the sooner key, 0 if
// neither exists.
func (h *soonest) lesser(incs *pool[incarnation], at uint32) uint32 {
	n := uint32(len(h.heap))
	switch {
	case at >= n:
		return 0
	case at+1 == n:
		return at
	case before(incs.at(uint32(h.heap[at+1])).key, incs.at(uint32(h.heap[at])).key):
		return at + 1
	}
	return at
}

// due returns the incarnation with the location that is the soonest to expire,
// and that location; 0 if there is none. Void incarnations must be gone.
func (m *Map) due() (inc *incarnation, oldest uint32) {
	h := &m.soonest
	for len(h.heap) > 1 {
		in := m.incs.at(uint32(h.heap[1]))
		deadline := m.entries.at(in.oldest).deadline
		if in.key == deadline {
			return in, in.oldest
		}
		in.key = deadline
		h.down(&m.incs, 1)
	}
	return nil, 0
}
