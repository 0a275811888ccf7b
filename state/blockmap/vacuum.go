package blockmap

import "time"

// Vacuum removes at most limit locations that are void or have expired, a piece
// for each hold of the lock, and tells whether there are more. Its work is
// proportional to what it removes.
func (m *Map) Vacuum(now time.Duration, limit int) (expired int, more bool) {
	for {
		var n int
		n, more = m.vacuumPiece(ticks(now), min(limit-expired, m.piece))
		expired += n
		if !more || expired >= limit {
			return expired, more
		}
	}
}

func (m *Map) vacuumPiece(now uint64, limit int) (removed int, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = max(m.clock, now)
	removed = m.reclaim(limit)
	if m.firstDead != 0 {
		return removed, true
	}
	for {
		in, i := m.due()
		if i == 0 || !expired(m.entries.at(i).deadline, uint32(now)) {
			return removed, false
		}
		if removed >= limit {
			return removed, true
		}
		if removed%warmGroup == 0 {
			m.touched += m.warmOldest(in)
		}
		m.remove(i)
		m.expired++
		removed++
	}
}

// NextDeadline is when Vacuum has something to do: 0 while there are void
// locations, else the soonest deadline; false if the map is empty.
func (m *Map) NextDeadline() (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.firstDead != 0 {
		return 0, true
	}
	_, i := m.due()
	if i == 0 {
		return 0, false
	}
	// The 32 bits of a deadline are near those of the clock.
	ahead := int32(m.entries.at(i).deadline - uint32(m.clock))
	return time.Duration(max(int64(m.clock)+int64(ahead), 0)) << tickBits, true
}
