package blockmap

import "kvca/state"

// Expect counts chain as tentatively held by s, until Unexpect is called with
// the same arguments. Where the bound of tentative locations does not let the
// whole chain in, it records nothing and returns false: Unexpect must then not
// be called. Tentative locations count in Walk.Expected and, as continuations, in
// Walk.Fan, and nowhere else.
func (m *Map) Expect(s state.Slot, chain []uint64) bool {
	m.slots.make(s)
	t := &m.tentative
	for done := 0; done < len(chain); {
		n := min(len(chain)-done, m.piece)
		k := t.expectPiece(s, chain[done:done+n], &m.slots)
		done += k
		if k < n {
			m.Unexpect(s, chain[:done])
			t.dropped.Add(1)
			return false
		}
	}
	return true
}

// expectPiece returns how many blocks it could count.
func (t *tentative) expectPiece(s state.Slot, chain []uint64, slots *slots) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	generation := uint32(slots.generation(s))
	for i, hash := range chain {
		if !t.expect(hash, s, generation) {
			return i
		}
	}
	return len(chain)
}

// Unexpect takes back one Expect that returned true. A Void in between has
// voided the tentative locations, and they still have to be taken back.
func (m *Map) Unexpect(s state.Slot, chain []uint64) {
	for hi := len(chain); hi > 0; hi -= m.piece {
		m.tentative.unexpectPiece(s, chain[max(0, hi-m.piece):hi], &m.slots)
	}
}

func (t *tentative) unexpectPiece(s state.Slot, chain []uint64, slots *slots) {
	t.mu.Lock()
	defer t.mu.Unlock()
	generation := uint32(slots.generation(s))
	for i := len(chain) - 1; i >= 0; i-- {
		t.unexpect(chain[i], s, generation)
	}
}

// walk adds what is expected of chain to w. It ends at the first block without
// a tentative location, and visits blocks as Map.ascend does.
func (t *tentative) walk(chain []uint64, w *Walk, slots *slots) {
	if t.count.Load() == 0 {
		return
	}
	w.path = w.path[:0]
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i, hash := range chain {
		b := t.lookup(hash)
		if b == 0 {
			break
		}
		e := t.blocks.at(b)
		w.path = append(w.path, step{entry: b, count: e.count, requests: e.requests})
		if i%walkPiece == walkPiece-1 {
			t.mu.RUnlock()
			t.mu.RLock()
		}
	}
	w.partings()
	w.fit(slots.top.Load())
	again := true
	for i := len(w.path) - 1; i >= 0; i-- {
		if !again && w.path[i].count == w.path[i+1].count {
			continue
		}
		again = t.visit(chain[i], i, w, slots)
	}
}

// visit notes the slots that will hold block i and tells whether one of them
// has been voided since.
func (t *tentative) visit(hash uint64, i int, w *Walk, slots *slots) (again bool) {
	b := t.blocks.at(w.path[i].entry)
	if b.hash != hash || b.count == 0 {
		return true
	}
	for j := b.pairs; j != 0; {
		p := t.pairs.at(j)
		if p.live > 0 && p.generation == uint32(slots.generation(p.slot)) {
			w.awaited(p.slot, i+1)
		} else {
			again = true
		}
		j = p.next
	}
	return again
}
