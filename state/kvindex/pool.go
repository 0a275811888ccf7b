package kvindex

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// Chunks are so small that what a table has not filled of its last ones costs little.
// They are allocated in pairs: a pair of either kind fills a size class of Go's without
// waste.
const (
	chunkBits = 8
	chunkLen  = 1 << chunkBits
	chunkMask = chunkLen - 1
)

// chunk is a piece of a table. It has no pointers, so the garbage collector does
// not look into it.
type chunk[V any] [chunkLen]entry[V]

// entry is a hash, 0 where the place is empty, and what is known of it. They lie side by
// side: whoever finds the one wants the other, and memory is what takes the time. The hash
// is in two halves so that an entry needs no padding whatever V is.
type entry[V any] struct {
	low, high uint32
	val       V
}

func (e *entry[V]) hash() uint64 { return uint64(e.low) | uint64(e.high)<<32 }

func (e *entry[V]) set(hash uint64, val V) {
	e.low, e.high, e.val = uint32(hash), uint32(hash>>32), val
}

// at is what is at a place. To index the array would have the processor read the chunk's
// first line each time, in case there is no chunk: a lookup would wait for that line, too.
func (c *chunk[V]) at(i uint64) *entry[V] {
	return (*entry[V])(unsafe.Add(unsafe.Pointer(c), uintptr(i&chunkMask)*unsafe.Sizeof(c[0])))
}

// budget counts the bytes of all chunks against the bound.
type budget struct {
	used  atomic.Int64
	limit int64
}

func (b *budget) take(bytes int64) bool {
	if b.used.Add(bytes) <= b.limit {
		return true
	}
	b.used.Add(-bytes)
	return false
}

func (b *budget) give(bytes int64) { b.used.Add(-bytes) }

// maxSpare is how many empty chunks a pool keeps for whoever needs one next.
const maxSpare = 8

// pool hands out the chunks of one kind of table.
type pool[V any] struct {
	budget *budget
	void   *chunk[V] // stands for chunks that nobody has written to; never written

	mu     sync.Mutex
	spare  []*chunk[V]
	spares atomic.Int32 // len(spare)
}

func newPool[V any](b *budget) *pool[V] {
	return &pool[V]{budget: b, void: new(chunk[V])}
}

func (p *pool[V]) size() int64 { return int64(unsafe.Sizeof(chunk[V]{})) }

// prepare makes it likely that the next take allocates nothing: to be called
// before a lock that lookups need.
func (p *pool[V]) prepare() {
	for p.spares.Load() < maxSpare/2 && p.budget.take(2*p.size()) {
		pair := new([2]chunk[V])
		p.give(&pair[0])
		p.give(&pair[1])
	}
}

// take returns an empty chunk, nil at the bound.
func (p *pool[V]) take() *chunk[V] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.spare); n > 0 {
		c := p.spare[n-1]
		p.spare = p.spare[:n-1]
		p.spares.Store(int32(n - 1))
		return c
	}
	if !p.budget.take(2 * p.size()) {
		return nil
	}
	pair := new([2]chunk[V])
	p.spare = append(p.spare, &pair[1])
	p.spares.Store(1)
	return &pair[0]
}

// give takes an empty chunk back.
func (p *pool[V]) give(c *chunk[V]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spare) == maxSpare {
		p.budget.give(p.size())
		return
	}
	p.spare = append(p.spare, c)
	p.spares.Store(int32(len(p.spare)))
}

// discard takes back n chunks that are not empty.
func (p *pool[V]) discard(n int) { p.budget.give(int64(n) * p.size()) }
