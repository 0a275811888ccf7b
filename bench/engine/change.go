package engine

import "time"

// ChangeKind says what a Change reports.
type ChangeKind uint8

const (
	// Stored says that a run of blocks has content that can be hit.
	Stored ChangeKind = iota + 1
	// Removed says that blocks have lost theirs, because their memory was given to others.
	Removed
	// Cleared says that all blocks have.
	Cleared
)

// Change is something that happened to what an engine has cached. A block that is hit, pinned or released does not change.
type Change struct {
	Kind ChangeKind
	// Hashes are, of Stored, the run's names, each the child of the one before; of Removed, the lost ones in the order in which
	// they went. Cleared has none.
	Hashes []uint64
	// Parent names the block before a run that does not begin at the prompt's first token.
	Parent    uint64
	HasParent bool
	// First is the place of a run's first block in prompt and answer together, counted in blocks.
	First int
	// Ref is what came with the request that computed the run.
	Ref any
}

// Watch has tell called at the end of each step in which the cache has changed, with the changes in their order: all of a step
// together, as vLLM publishes them. They are valid during the call. What Clear drops is told with the next step. An engine that
// is watched takes a step for each time that a block fills up, so watch one of coarse blocks where speed counts. Call it before
// the first Submit.
func (e *Engine) Watch(tell func(at time.Duration, changes []Change)) {
	e.journal = &journal{tell: tell}
	e.pool.journal, e.pool.plain = e.journal, false
}

// KeepCopies has the cache name every copy of a content that was computed more than once, as vLLM's does: each counts as stored
// and as removed. By default only the first copy has a name. Call it before the first Submit.
func (e *Engine) KeepCopies() { e.pool.copies, e.pool.plain = make(map[uint64][]int32), false }

// journal collects the changes of a step.
type journal struct {
	tell    func(time.Duration, []Change)
	changes []Change
	last    *seq // whose run the last change is, if it is one
}

// stored adds block i of s, to the run that it continues if it does.
func (j *journal) stored(s *seq, i, promptBlocks int) {
	list, k := s.names(i, promptBlocks)
	if j.last == s && k > 0 {
		run := &j.changes[len(j.changes)-1]
		if n := len(run.Hashes); run.First+n == i {
			run.Hashes = run.Hashes[:n+1] // of the same list
			return
		}
	}
	c := Change{Kind: Stored, Hashes: list[k : k+1], First: i, Ref: s.Ref, HasParent: i > 0}
	if i > 0 {
		c.Parent, _ = s.hash(i-1, promptBlocks)
	}
	j.changes, j.last = append(j.changes, c), s
}

func (j *journal) removed(hash uint64) {
	j.last = nil
	if n := len(j.changes); n > 0 && j.changes[n-1].Kind == Removed {
		c := &j.changes[n-1]
		c.Hashes = append(c.Hashes, hash)
		return
	}
	j.changes = append(j.changes, Change{Kind: Removed, Hashes: []uint64{hash}})
}

func (j *journal) cleared() {
	j.last = nil
	j.changes = append(j.changes, Change{Kind: Cleared})
}

// flush tells what a step that ended at that time has changed.
func (j *journal) flush(at time.Duration) {
	if j == nil || len(j.changes) == 0 {
		return
	}
	j.tell(at, j.changes)
	j.forget()
}

func (j *journal) forget() {
	clear(j.changes)
	j.changes, j.last = j.changes[:0], nil
}
