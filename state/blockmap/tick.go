package blockmap

import "time"

// A deadline is kept in ticks of 2^20 ns (1.05 ms), modulo 2^32. Two of them
// compare right while they are less than 2^31 ticks (26 days) apart.
const tickBits = 20

func ticks(d time.Duration) uint64 { return uint64(max(d, 0)) >> tickBits }

// ttlTicks rounds up, so that no location is void before its time by rounding
// of the TTL; a location may still end up to one tick early, by rounding of
// the moment it was learned.
func ttlTicks(ttl time.Duration) uint32 { return uint32(ticks(ttl + 1<<tickBits - 1)) }

// before tells whether deadline a comes before deadline b.
func before(a, b uint32) bool { return int32(a-b) < 0 }

func expired(deadline, now uint32) bool { return !before(now, deadline) }
