package blockmap

import "sync"

// maxPiece is how many locations are written for each hold of the lock, so that
// a reader never waits for a whole long chain.
const maxPiece = 64

// Map says which backend is believed to hold which block. It is safe for
// concurrent use; readers don't block each other.
type Map struct {
	ttl      uint32 // ticks
	maxBytes int64
	slots    slots
	piece    int // maxPiece, less in a map that small and in tests
	steps    int // maxSteps, less in tests

	tentative tentative // has a lock of its own

	mu      sync.RWMutex // guards all below
	entries pool[entry]
	index   index
	free    uint32 // first free entry, linked by newer
	incs    pool[incarnation]
	soonest soonest
	clock   uint64 // latest time seen, in ticks

	freeInc, firstDead, lastDead uint16

	touched uint32 // see warm.go

	blocks, locations                       int
	expired, evicted, mirrorEvicted, voided uint64
}

// A location's share of the memory: an entry and its bucket.
const bytesPerLocation = 40 + 4

// New makes an empty map. Memory is taken as it is needed.
func New(c Config) (*Map, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	share := c.MaxBytes / 8
	chunks := (c.MaxBytes - share) / (bytesPerLocation * chunkLen)
	return newMap(c, uint32(chunks*chunkLen), tentativeLimit(share)), nil
}

// newMap makes a map of at most entries locations and pairs tentative ones,
// where the reserved 0 counts.
func newMap(c Config, entries, pairs uint32) *Map {
	return &Map{
		piece:     min(maxPiece, int(entries)-1),
		steps:     maxSteps,
		ttl:       ttlTicks(c.TTL),
		maxBytes:  c.MaxBytes,
		entries:   newPool[entry](entries),
		index:     newIndex(entries),
		incs:      newPool[incarnation](maxIncarnations),
		soonest:   newSoonest(),
		tentative: newTentative(pairs),
	}
}

// capacity is how many locations the map can have.
func (m *Map) capacity() int { return int(m.entries.limit) - 1 }
