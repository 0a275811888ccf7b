package blockmap

import "time"

// News is what a Learn has changed: enough to tell other nodes the difference
// instead of the chain.
type News struct {
	// Added is how many locations are new, those included that had expired, or
	// that the mirror had evicted while a long chain was being learned.
	Added int
	// First is the index of the first block that was new to the backend or had
	// expired; Len where all were known.
	First int
	// Len is how many blocks were recorded: the chain's beginning, where its
	// bounds are shorter than the chain.
	Len int
	// Idle is for how long the last recorded block had been unused; 0 if it is
	// new. A refresh after a short time is hardly worth telling.
	Idle time.Duration
	// OK is false where nothing was recorded, since the generation is not the
	// backend's current one. Only Added counts then.
	OK bool
}

// idle is for how long a location with that deadline has not been used, in
// ticks; 0 for one that counts as new.
func (m *Map) idle(deadline, now uint32) uint32 {
	idle := int32(now - (deadline - m.ttl))
	if idle < 0 || uint32(idle) >= m.ttl {
		return 0
	}
	return uint32(idle)
}
