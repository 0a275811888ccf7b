package blockmap

// Pools grow by chunks of 1,024: small enough that zeroing one under the lock
// takes microseconds, and every element size here fills Go's size classes
// without waste.
const (
	chunkBits = 10
	chunkLen  = 1 << chunkBits
	chunkMask = chunkLen - 1
)

// pool hands out numbers of elements that never move and are never given back
// to the heap: whoever uses it keeps a free list of its own. Number 0 means
// none. The elements hold no pointers, so the garbage collector does not look
// into them.
type pool[T any] struct {
	chunks []*[chunkLen]T
	used   uint32 // numbers handed out, the reserved 0 included
	limit  uint32 // used never exceeds it
}

// newPool makes a pool of at most limit elements, number 0 included.
func newPool[T any](limit uint32) pool[T] {
	chunks := (uint64(limit) + chunkLen - 1) / chunkLen
	p := pool[T]{chunks: make([]*[chunkLen]T, 0, chunks), limit: limit}
	p.fresh()
	return p
}

func (p *pool[T]) at(i uint32) *T { return &p.chunks[i>>chunkBits][i&chunkMask] }

func (p *pool[T]) full() bool { return p.used >= p.limit }

// fresh returns a number never used before; the pool must not be full.
func (p *pool[T]) fresh() uint32 {
	if int(p.used>>chunkBits) == len(p.chunks) {
		p.chunks = append(p.chunks, new([chunkLen]T))
	}
	p.used++
	return p.used - 1
}
