package wire

import (
	"encoding/binary"
	"time"
)

// MaxRun is how many hashes one run has at most: 32 KiB of them.
const MaxRun = 4096

// Run is a path of blocks that a backend holds, or has dropped.
type Run struct {
	Key        uint64
	Generation uint64
	// Dropped says that the backend holds the hashes no more, by the sender's
	// doing. It is a hint: it does not undo what others learn later.
	Dropped bool
	// Idle is how long ago the blocks were used, in whole milliseconds.
	Idle   time.Duration
	Parent uint64
	// Hashes are the blocks from the first after the parent.
	Hashes []uint64
}

// AppendRun appends a run of at most MaxRun hashes.
func AppendRun(b []byte, r *Run) []byte {
	b = appendU64(b, r.Key)
	b = binary.AppendUvarint(b, r.Generation)
	flags := byte(0)
	if r.Dropped {
		flags = 1
	}
	b = append(b, flags)
	b = appendAmount(b, r.Idle.Milliseconds())
	b = appendU64(b, r.Parent)
	b = binary.AppendUvarint(b, uint64(len(r.Hashes)))
	for _, h := range r.Hashes {
		b = appendU64(b, h)
	}
	return b
}

// Run reads a run into dst, whose Hashes are used again.
func (r *Reader) Run(dst *Run) {
	dst.Key, dst.Generation = r.U64(), r.Uvarint()
	dst.Dropped = r.U8()&1 != 0
	dst.Idle = time.Duration(min(r.Uvarint(), maxIdle)) * time.Millisecond
	dst.Parent = r.U64()
	dst.Hashes = dst.Hashes[:0]
	n := r.Count(8)
	if n > MaxRun {
		r.bad, r.b = true, nil
		return
	}
	for range n {
		dst.Hashes = append(dst.Hashes, r.U64())
	}
}

// maxIdle is more than any location's time to live, in milliseconds.
const maxIdle = 1 << 40
