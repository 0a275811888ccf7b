package engine

import "slices"

// none ends a list of blocks.
const none int32 = -1

// block is one unit of cache memory. It is held by refs requests, or idle. An idle block that is cached waits in the LRU list, any
// other in the list of spare ones.
type block struct {
	hash       uint64
	refs       int32
	prev, next int32
	cached     bool
}

// pool is the cache: a fixed number of blocks, found by the chained hash of their content. Blocks that were never used exist
// only as a number, so a big cache costs memory only once it is filled.
type pool struct {
	size   int
	blocks []block
	byHash table
	spare  int32 // idle blocks without content, newest first; linked by next
	oldest int32 // idle cached blocks in the order in which they will be evicted
	newest int32
	held   int // blocks with refs > 0
	lru    int // idle cached blocks

	plain   bool               // neither of the two: evicting is what a long simulation does most
	copies  map[uint64][]int32 // further blocks of the same content, oldest first; nil: they have no name
	journal *journal           // nil: nobody watches
}

func newPool(size int) *pool {
	return &pool{size: size, spare: none, oldest: none, newest: none, plain: true}
}

// free is how many blocks can be taken now, evicting whatever is idle.
func (p *pool) free() int { return p.size - p.held }

// leading counts the blocks at the head of the chain that are in the cache.
func (p *pool) leading(chain []uint64) int {
	for i, h := range chain {
		if _, ok := p.byHash.get(h); !ok {
			return i
		}
	}
	return len(chain)
}

// find appends the cached blocks at the head of the chain, up to limit, and counts those that no request holds: pinning them uses
// up free blocks too.
func (p *pool) find(list []int32, chain []uint64, limit int) (found []int32, idle int) {
	for _, h := range chain[:min(limit, len(chain))] {
		i, ok := p.byHash.get(h)
		if !ok {
			break
		}
		list = append(list, i)
		if p.blocks[i].refs == 0 {
			idle++
		}
	}
	return list, idle
}

// pin takes a reference on a cached block.
func (p *pool) pin(i int32) {
	b := &p.blocks[i]
	if b.refs == 0 {
		p.unlink(i)
		p.held++
	}
	b.refs++
}

// take returns a block without content, held once: a spare one, else one never used, else the one evicted first. The caller has
// seen free() > 0.
func (p *pool) take() int32 {
	i := p.pick()
	b := &p.blocks[i]
	b.refs, b.cached = 1, false
	p.held++
	return i
}

func (p *pool) pick() int32 {
	if i := p.spare; i != none {
		p.spare = p.blocks[i].next
		return i
	}
	if len(p.blocks) < p.size {
		p.blocks = append(p.blocks, block{})
		return int32(len(p.blocks) - 1)
	}
	i := p.oldest
	p.unlink(i)
	if p.plain {
		p.byHash.remove(p.blocks[i].hash)
	} else {
		p.evict(i)
	}
	return i
}

// evict takes a block's name away where someone watches or a content may have several blocks.
func (p *pool) evict(i int32) {
	hash := p.blocks[i].hash
	if len(p.copies) == 0 || !p.evictCopy(hash, i) {
		p.byHash.remove(hash)
	}
	if p.journal != nil {
		p.journal.removed(hash)
	}
}

// evictCopy does so where a content has further copies: the next oldest is found in the place of the one found so far.
func (p *pool) evictCopy(hash uint64, i int32) bool {
	list, ok := p.copies[hash]
	if !ok {
		return false
	}
	if at := slices.Index(list, i); at >= 0 {
		list = slices.Delete(list, at, at+1)
	} else {
		p.byHash.remove(hash)
		p.byHash.put(hash, list[0])
		list = slices.Delete(list, 0, 1)
	}
	if p.copies[hash] = list; len(list) == 0 {
		delete(p.copies, hash)
	}
	return true
}

// register names a held block whose content is complete; it reports whether the block has got a name by it. The same content may
// be computed twice. Unless copies are kept, the first one keeps the name and the other is spare memory as soon as it is released.
func (p *pool) register(i int32, hash uint64) bool {
	b := &p.blocks[i]
	if b.cached {
		return false
	}
	_, taken := p.byHash.get(hash)
	switch {
	case !taken:
		p.byHash.put(hash, i)
	case p.copies == nil:
		return false
	default:
		p.copies[hash] = append(p.copies[hash], i)
	}
	b.hash, b.cached = hash, true
	return true
}

// release gives up one request's blocks, last one first, so that the ends of a chain are evicted before its head.
func (p *pool) release(held []int32) {
	for k := len(held) - 1; k >= 0; k-- {
		i := held[k]
		b := &p.blocks[i]
		if b.refs--; b.refs > 0 {
			continue
		}
		p.held--
		if b.cached {
			p.append(i)
		} else {
			b.next, p.spare = p.spare, i
		}
	}
}

// clear forgets all content. Held blocks stay with their requests, without a name.
func (p *pool) clear() {
	for i := p.oldest; i != none; {
		b := &p.blocks[i]
		next := b.next
		b.next, p.spare = p.spare, i
		i = next
	}
	p.oldest, p.newest, p.lru = none, none, 0
	for i := range p.blocks {
		p.blocks[i].cached = false
	}
	p.byHash.clear()
	clear(p.copies)
}

func (p *pool) append(i int32) {
	b := &p.blocks[i]
	b.prev, b.next = p.newest, none
	if p.newest == none {
		p.oldest = i
	} else {
		p.blocks[p.newest].next = i
	}
	p.newest = i
	p.lru++
}

func (p *pool) unlink(i int32) {
	b := &p.blocks[i]
	if b.prev == none {
		p.oldest = b.next
	} else {
		p.blocks[b.prev].next = b.next
	}
	if b.next == none {
		p.newest = b.prev
	} else {
		p.blocks[b.next].prev = b.prev
	}
	p.lru--
}
