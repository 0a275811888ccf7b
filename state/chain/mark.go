package chain

import "github.com/dchest/siphash"

// maxMarks is how many marks one chain keeps: the last ones. Between two turns
// of a conversation lie an answer and what follows it, rarely more than a few
// messages; a mark costs one hash of less than a block.
const maxMarks = 8

// Mark names everything that was written up to a point inside a block, as a
// block's hash names everything up to the block's end. A follow-up repeats the
// request before it whole, so a mark at the end of each message finds that
// request again even where a turn is shorter than a block: blocks alone would
// take the first turns of short conversations for strangers.
type Mark struct {
	// Bytes is how many canonical bytes the mark names, from the first.
	Bytes int64
	Hash  uint64
}

// Mark sets a mark at what has been written so far. At a block's end it sets
// none: the block's own hash says the same.
func (h *Hasher) Mark() {
	if h.filled == nameSize {
		return
	}
	if len(h.marks) == maxMarks {
		h.marks = append(h.marks[:0], h.marks[1:]...)
	}
	h.marks = append(h.marks, Mark{Bytes: h.bytes, Hash: h.Sum()})
}

// Sum names everything that has been written: the same as a mark here would, or, at a
// block's end, the block itself.
func (h *Hasher) Sum() uint64 {
	if h.filled == nameSize && len(h.hashes) > 0 {
		return h.hashes[len(h.hashes)-1]
	}
	return siphash.Hash(h.key.K0, ^h.key.K1, h.link[:h.filled])
}

// Marks are the last marks that were set, first to last. The slice belongs to
// the Hasher and is valid until Reset.
func (h *Hasher) Marks() []Mark { return h.marks }
