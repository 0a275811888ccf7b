package kvevent

import "kvca/state/kvindex"

// Bounds of a batch.
const (
	// MaxBatch is how many bytes a payload may have.
	MaxBatch = 64 << 20
	// MaxEvents is how many events of a batch are read. Engines send one batch a
	// scheduler step, with one event a removed block.
	MaxEvents = 1 << 20
)

// Batch is what one message says.
type Batch struct {
	// Time is the engine's clock in seconds since 1970.
	Time float64
	// Rank is the engine's data-parallel rank, if it says so.
	Rank    int
	HasRank bool
	// Events are those that were understood, in order.
	Events []Event
	// Skipped counts events of kinds that are not known.
	Skipped int
	// Damaged counts events that could not be read. What they said is lost: the
	// source has to be treated as after a gap.
	Damaged int
	// Problem says what was wrong with the first damaged event, empty if none.
	Problem string
}

// Kind is what an event says.
type Kind uint8

// The kinds of events.
const (
	Stored  Kind = iota // blocks are held now
	Removed             // blocks are no longer held
	Cleared             // nothing is held any more
)

var kindNames = [...]string{Stored: "BlockStored", Removed: "BlockRemoved", Cleared: "AllBlocksCleared"}

// String is the kind's tag on the wire.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Event is one change of what an engine holds.
type Event struct {
	Kind Kind
	// Stored is what a Stored event says.
	Stored kvindex.Stored
	// Hashes are the blocks that a Removed event names.
	Hashes []uint64
	// Counts are how many copies of each of Hashes are left, nil where the engine
	// does not say.
	Counts []int
	// Tier is where the blocks are, or were.
	Tier kvindex.Tier
	// Group is the KV cache group, -1 where the engine does not say.
	Group int
	// SpecKind is the group's kind of attention, empty where the engine does not
	// say. Removed events never do.
	SpecKind string
	// Remote is true where the blocks are not on this engine itself.
	Remote bool
}
