package kvindex

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"kvca/state"
	"kvca/state/chain"
)

// Limits of a Config, and of what sources tell.
const (
	MinBytes = 1 << 20
	MaxBytes = 128 << 30

	// MaxSources bounds the sources, the retired ones that are not swept yet
	// included.
	MaxSources = 1<<16 - 1
	// MaxBlockSize bounds the tokens of a block; engines use up to 8,320.
	MaxBlockSize = 1 << 20
)

// Config configures an Index.
type Config struct {
	// Key is the cluster's hash key. All nodes need the same one: what they tell
	// each other is keys. It is a secret, as the block map's is.
	Key chain.Key
	// MaxBytes bounds the memory of entries, each a block at a source: 46 bytes for a
	// block that one source has, 26 where a hundred have it. At the bound new
	// blocks are not taken, and the source says that it is partial. Too small, and
	// engines are believed to hold less than they do; too large costs only memory.
	// Beside it there is a fixed base of about a kilobyte a source.
	MaxBytes int64
}

// Validate returns all faults of c, each naming the key and what would be right.
func (c Config) Validate() error {
	var faults []error
	if c.MaxBytes < MinBytes || c.MaxBytes > MaxBytes {
		faults = append(faults, fmt.Errorf("precise index: MaxBytes is %d, want %d to %d", c.MaxBytes, int64(MinBytes), int64(MaxBytes)))
	}
	return errors.Join(faults...)
}

// Shards are as many as memory allows, so that the chunk that each has not filled
// costs little.
const (
	maxShardBits  = 7
	bytesPerShard = 1 << 19
)

// Index says which source holds which block. It is safe for concurrent use.
type Index struct {
	key    chain.Key
	budget budget
	blocks *pool[uint64]
	known  *pool[known]

	shards    []shard
	shardBits uint

	view    atomic.Pointer[view]
	dropped atomic.Uint64

	sweeper sweeper

	mu      sync.Mutex // guards what follows; a source's locks are taken before it
	numbers numbers
}

// New makes an empty index. Memory is taken as it is needed.
func New(c Config) (*Index, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	x := &Index{key: c.Key}
	x.budget.limit = c.MaxBytes
	x.blocks, x.known = newPool[uint64](&x.budget), newPool[known](&x.budget)
	for x.shardBits < maxShardBits && bytesPerShard<<(x.shardBits+1) <= c.MaxBytes {
		x.shardBits++
	}
	x.shards = make([]shard, 1<<x.shardBits)
	for i := range x.shards {
		x.shards[i].table = newTable(x.blocks)
	}
	x.view.Store(&view{})
	return x, nil
}

// shardOf returns the shard of a key, and the key's hash in it.
func (x *Index) shardOf(key uint64) (s *shard, hash uint64) {
	return &x.shards[key>>(64-x.shardBits)], x.turn(key)
}

func (x *Index) turn(key uint64) uint64 { return key<<x.shardBits | key>>(64-x.shardBits) }

func (x *Index) keyOf(hash uint64) uint64 { return hash>>x.shardBits | hash<<(64-x.shardBits) }

// Heard tells whether a live source of a backend exists.
func (x *Index) Heard(s state.Slot) bool { return x.view.Load().heard(s) }
