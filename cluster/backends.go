package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"kvca/state"
	"kvca/state/ledger"
	"kvca/state/ring"
)

// entry is one backend as this node knows it.
type entry struct {
	id   string
	key  uint64
	slot state.Slot
	// generation is the cluster's count of the times its cache was lost.
	generation atomic.Uint64
	// adopted is when the generation last came from a peer, 0 never.
	adopted atomic.Int64
	// age is how long the oldest location in its full mirror has been idle, as
	// the owner says, in milliseconds plus one; 0 where it is not full.
	age atomic.Uint64

	// What follows belongs to Cluster.viewMu.
	role ledger.Role
	// until is when learning ends, or when a former owner stops answering.
	until time.Duration
}

// backends finds entries by slot and by key. It is read for every frame and
// written when the fleet changes.
type backends struct {
	mu     sync.RWMutex
	bySlot []*entry
	byKey  map[uint64]*entry
}

// open enters a backend; nil where the slot or the key is taken.
func (b *backends) open(s state.Slot, id string) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &entry{id: id, key: ring.Key(id), slot: s}
	if b.byKey == nil {
		b.byKey = make(map[uint64]*entry)
	}
	if b.byKey[e.key] != nil {
		return nil
	}
	for int(s) >= len(b.bySlot) {
		b.bySlot = append(b.bySlot, nil)
	}
	b.byKey[e.key], b.bySlot[s] = e, e
	return e
}

func (b *backends) close(s state.Slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if int(s) < len(b.bySlot) && b.bySlot[s] != nil {
		delete(b.byKey, b.bySlot[s].key)
		b.bySlot[s] = nil
	}
}

// at is the backend in slot s, nil for none.
func (b *backends) at(s state.Slot) *entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if int(s) < len(b.bySlot) {
		return b.bySlot[s]
	}
	return nil
}

// of is the backend of that key, nil for one that this node does not know.
func (b *backends) of(key uint64) *entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.byKey[key]
}

// all lists the backends in the order of their slots.
func (b *backends) all() []*entry {
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := make([]*entry, 0, len(b.byKey))
	for _, e := range b.bySlot {
		if e != nil {
			list = append(list, e)
		}
	}
	return list
}
