package blockmap

import "kvca/state"

// Forget drops the locations of s of chain[from:], which the engine has
// evidently evicted. What s holds of other chains with the same prefix stays:
// until that is refreshed or gone, a walk may believe that s holds the gap too.
func (m *Map) Forget(s state.Slot, chain []uint64, from int) {
	from = max(from, 0)
	for hi := len(chain); hi > from; hi -= m.piece {
		m.forgetPiece(s, chain[max(from, hi-m.piece):hi])
	}
}

func (m *Map) forgetPiece(s state.Slot, chain []uint64) {
	st := m.slots.get(s)
	if st == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if st.inc == 0 {
		return
	}
	for i := len(chain) - 1; i >= 0; i-- {
		b := m.lookup(chain[i])
		if b == 0 {
			continue
		}
		location := m.find(b, st.inc)
		if location == 0 {
			continue
		}
		if e := m.entries.at(b); e.fan > 0 {
			e.version |= ragged
		}
		m.remove(location)
	}
}
