package feed

import (
	"errors"

	"kvca/proxy/engine/kvevent"
	"kvca/state/kvindex"
)

// keeper tells the sink what batches say. It belongs to the worker.
type keeper struct {
	sink    Sink
	counts  *counts
	decoder kvevent.Decoder
	groups  kvevent.Groups
	// removed are hashes that the sink is still to be told of, of one tier: an engine
	// names each block that it evicts in an event of its own, and the index takes
	// many at a time in half the time.
	removed []uint64
	tier    kvindex.Tier
}

// apply takes a batch in whole or not at all. Events are applied in their order:
// removals come before the stores that took the room.
func (k *keeper) apply(payload []byte) (outcome, error) {
	b, err := k.decoder.Decode(payload)
	if err != nil {
		return damaged, err
	}
	if b.Damaged > 0 {
		return damaged, errors.New(b.Problem)
	}
	result := taken
	for i := range b.Events {
		e := &b.Events[i]
		k.counts.events++
		apply, reset := k.groups.Judge(e)
		if reset {
			k.flush()
			k.counts.resets[ResetGroups]++
			k.sink.Reset()
			result = regrouped
		}
		if !apply {
			continue
		}
		if k.event(e) {
			result = cleared
		}
	}
	k.flush()
	return result, nil
}

// event applies one event and reports whether it cleared the cache. What the sink
// does not take it counts itself.
func (k *keeper) event(e *kvevent.Event) (clears bool) {
	switch e.Kind {
	case kvevent.Stored:
		k.flush()
		_ = k.sink.Store(&e.Stored)
	case kvevent.Removed:
		k.remove(e)
	case kvevent.Cleared:
		k.flush()
		k.counts.resets[ResetCleared]++
		k.sink.Reset()
		return true
	}
	return false
}

// maxCopies bounds the copies of one block that are removed at once.
const maxCopies = 1 << 12

// remove counts down one copy a hash, unless the engine says how many are left: of
// those with none left all go, whatever was counted here.
func (k *keeper) remove(e *kvevent.Event) {
	if len(e.Counts) != len(e.Hashes) {
		if e.Tier != k.tier {
			k.flush()
		}
		k.removed, k.tier = append(k.removed, e.Hashes...), e.Tier
		return
	}
	k.flush()
	for i, left := range e.Counts {
		if left == 0 {
			k.removeAll(e.Hashes[i:i+1], e.Tier)
		}
	}
}

// maxRemoved is how many hashes the keeper keeps room for between batches.
const maxRemoved = 1 << 12

// flush tells the sink what was removed.
func (k *keeper) flush() {
	if len(k.removed) > 0 {
		k.sink.Remove(k.removed, k.tier)
	}
	if k.removed = k.removed[:0]; cap(k.removed) > maxRemoved {
		k.removed = nil
	}
}

func (k *keeper) removeAll(hash []uint64, t kvindex.Tier) {
	for range maxCopies {
		if k.sink.Remove(hash, t) > 0 {
			return
		}
	}
}
