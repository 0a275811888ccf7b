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
// not look into it. Hashes lie apart from values: most of a search is in them.
type chunk[V any] struct {
	hash [chunkLen]uint64 // 0: the place is empty
	val  [chunkLen]V
}

// hashAt is where a place's hash is. To index the array would have the processor read the
// chunk's first line each time, in case there is no chunk: a lookup would wait for that
// line, too.
func (c *chunk[V]) hashAt(i uint64) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(c), i&chunkMask*8))
}

// valAt is where a place's value is, as hashAt.
func (c *chunk[V]) valAt(i uint64) *V {
	return (*V)(unsafe.Add(unsafe.Pointer(c), unsafe.Offsetof(c.val)+uintptr(i&chunkMask)*unsafe.Sizeof(c.val[0])))
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
