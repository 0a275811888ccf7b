package blockmap

// Stats is the map's size and what its bounds have cost.
type Stats struct {
	Blocks, Locations int
	Tentative         int   // pairs of a block and a slot
	Bytes             int64 // of all of these, never above MaxBytes
	MaxBytes          int64
	Expired           uint64 // locations removed after their deadline
	Evicted           uint64 // locations removed before it, since the map was full
	MirrorEvicted     uint64 // locations removed before it, since their backend's mirror was full
	Voided            uint64 // locations of older generations removed
	ExpectDropped     uint64 // chains that Expect did not record
}

// Stats tells the sizes now and the counts since New. Bytes counts what is in
// use; memory once taken is kept for what comes.
func (m *Map) Stats() Stats {
	m.mu.RLock()
	s := Stats{
		Blocks: m.blocks, Locations: m.locations,
		Bytes: int64(m.locations) * bytesPerLocation, MaxBytes: m.maxBytes,
		Expired: m.expired, Evicted: m.evicted, MirrorEvicted: m.mirrorEvicted, Voided: m.voided,
		ExpectDropped: m.tentative.dropped.Load(),
	}
	m.mu.RUnlock()
	t := &m.tentative
	t.mu.RLock()
	defer t.mu.RUnlock()
	s.Tentative = int(t.inUse)
	s.Bytes += int64(t.inUse)*bytesPerPair + int64(t.inUseBl)*bytesPerAwaited
	return s
}
