package chain

import (
	"encoding/binary"
	"fmt"

	"github.com/dchest/siphash"
)

// Bounds of a block size, in bytes. Below the lower one a block is shorter than
// the name of the block before it; above the upper one few prompts have a block.
const (
	MinBlockSize = 8
	MaxBlockSize = 64 << 10
)

// nameSize is the length of a block's name, and so of what is put before a block.
const nameSize = 8

// CheckBlockSize says what is wrong with a block size in bytes, or nil: it must
// be a multiple of 8 from MinBlockSize to MaxBlockSize.
func CheckBlockSize(blockSize int) error {
	if blockSize < MinBlockSize || blockSize > MaxBlockSize || blockSize%8 != 0 {
		return fmt.Errorf("block size %d: want a multiple of 8 from %d to %d bytes", blockSize, MinBlockSize, MaxBlockSize)
	}
	return nil
}

// Hasher computes the chain of what is written to it. It is made to be kept and
// used again, by one goroutine at a time; Reset must come before the first Write.
type Hasher struct {
	key    Key
	link   []byte // the name of the last complete block, then the block being filled
	filled int    // bytes of link in use, the name included
	bytes  int64
	hashes []uint64
	marks  []Mark
}

// Reset starts a new chain. It takes back the slice that Hashes gave out. A block
// size that CheckBlockSize refuses gives a chain without blocks.
func (h *Hasher) Reset(key Key, blockSize int) {
	if CheckBlockSize(blockSize) != nil {
		blockSize = 0
	}
	h.key, h.bytes, h.hashes, h.marks, h.filled = key, 0, h.hashes[:0], h.marks[:0], nameSize
	size := nameSize + blockSize
	if cap(h.link) < size {
		h.link = make([]byte, size)
	}
	h.link = h.link[:size]
	clear(h.link[:nameSize])
}

// Write takes the next canonical bytes, in pieces of any size. It never fails and
// keeps nothing of p.
func (h *Hasher) Write(p []byte) (int, error) {
	n := len(p)
	h.bytes += int64(n)
	if len(h.link) <= nameSize {
		return n, nil
	}
	for len(p) > 0 {
		copied := copy(h.link[h.filled:], p)
		p = p[copied:]
		if h.filled += copied; h.filled == len(h.link) {
			h.closeBlock()
		}
	}
	return n, nil
}

// closeBlock names the block that has just become full and puts that name before
// the next one.
func (h *Hasher) closeBlock() {
	name := siphash.Hash(h.key.K0, h.key.K1, h.link)
	h.hashes = append(h.hashes, name)
	binary.LittleEndian.PutUint64(h.link, name)
	h.filled = nameSize
}

// Hashes is the chain so far: one hash for each complete block, first to last.
// The slice belongs to the Hasher and is valid until Reset.
func (h *Hasher) Hashes() []uint64 { return h.hashes }

// Bytes is how many bytes have been written since Reset.
func (h *Hasher) Bytes() int64 { return h.bytes }
