package kvindex

import "sync/atomic"

// Stats is what an index has.
type Stats struct {
	Entries  int    // blocks at sources
	Blocks   int    // different blocks, those of reset sources included until they are swept
	Bytes    int64  // memory of entries
	MaxBytes int64  // its bound
	Sources  int    // open ones
	Dropped  uint64 // blocks not taken for want of memory
}

// Stats looks at every source and every shard.
func (x *Index) Stats() Stats {
	st := Stats{Bytes: x.budget.used.Load(), MaxBytes: x.budget.limit, Dropped: x.dropped.Load()}
	x.mu.Lock()
	for _, s := range x.numbers.holders {
		if s != nil {
			st.Sources++
			st.Entries += int(s.counts.blocks.Load())
			st.Dropped += s.counts.dropped.Load()
		}
	}
	x.mu.Unlock()
	for i := range x.shards {
		s := &x.shards[i]
		s.mu.Lock()
		st.Blocks += s.blocks
		s.mu.Unlock()
	}
	return st
}

// counts are a source's figures.
type counts struct {
	blocks                                     atomic.Int64
	partial                                    atomic.Bool
	orphans, unknown, skipped, dropped, resets atomic.Uint64
}

// SourceStats is what a source has, and what it was told that it could not use.
type SourceStats struct {
	Blocks    int    // blocks held
	BlockSize int    // tokens a block; 0: not learned yet
	Partial   bool   // since the last Reset, blocks were dropped
	Orphans   uint64 // blocks whose parent was not known
	Unknown   uint64 // removals of what was not held
	Skipped   uint64 // blocks that can't be indexed
	Dropped   uint64 // blocks not taken for want of memory
	Resets    uint64
}

// Stats are the source's figures.
func (s *Source) Stats() SourceStats {
	c := &s.counts
	return SourceStats{
		Blocks: int(c.blocks.Load()), BlockSize: int(s.blockSize.Load()), Partial: c.partial.Load(),
		Orphans: c.orphans.Load(), Unknown: c.unknown.Load(), Skipped: c.skipped.Load(),
		Dropped: c.dropped.Load(), Resets: c.resets.Load(),
	}
}
