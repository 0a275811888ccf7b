package blockmap

import "time"

// A deadline is kept in ticks of 2^20 ns (1.05 ms), modulo 2^32. Two of them
// compare right while they are less than 2^31 ticks (26 days) apart.
const tickBits = 20

func ticks(d time.Duration) uint64 { return uint64(max(d, 0)) >> tickBits }

// ttlTicks rounds down: a location is never believed in after its TTL, and ends
// up to two ticks early.
func ttlTicks(ttl time.Duration) uint32 { return uint32(ticks(ttl)) }

// before tells whether deadline a comes before deadline b.
func before(a, b uint32) bool { return int32(a-b) < 0 }

func expired(deadline, now uint32) bool { return !before(now, deadline) }
