package blockmap

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"kvca/state"
)

// tentative keeps the blocks of requests that are routed but not yet answered:
// for each block the slots that will hold it, counted. What a slot is expected
// to hold is a set of whole chains, so it is closed under prefixes like the
// learned locations, at every moment: Expect works from the root, Unexpect from
// the leaf.
type tentative struct {
	count   atomic.Int64 // pairs; a walk of a map without any takes no lock
	dropped atomic.Uint64

	mu      sync.RWMutex // guards all below
	blocks  pool[awaitedBlock]
	byHash  index
	pairs   pool[awaitedPair]
	byPair  index
	free    uint32 // free blocks, linked by chain
	freeP   uint32 // free pairs, linked by chain
	inUse   uint32
	inUseBl uint32
}

// awaitedBlock is a block with pairs.
type awaitedBlock struct {
	hash  uint64
	chain uint32 // next of its bucket
	pairs uint32 // first pair
	count uint32
	// requests is how many requests with this block are under way.
	requests uint32
}

// awaitedPair is a slot that is going to hold a block.
type awaitedPair struct {
	block          uint32
	chain          uint32 // next of its bucket
	next, previous uint32 // pairs of the same block
	generation     uint32 // low bits of the slot's, as of live
	// live counts the requests of the slot's generation, stale those that were
	// under way when the slot was voided: they still have to be taken back.
	live, stale uint32
	slot        state.Slot
}

const bytesPerPair, bytesPerAwaited = 32 + 4, 24 + 4

// tentativeLimit is how many pairs fit, each with a block of its own.
func tentativeLimit(maxBytes int64) uint32 {
	return uint32(maxBytes / (bytesPerPair + bytesPerAwaited) / chunkLen * chunkLen)
}

func newTentative(limit uint32) tentative {
	return tentative{
		blocks: newPool[awaitedBlock](limit), byHash: newIndex(limit),
		pairs: newPool[awaitedPair](limit), byPair: newIndex(limit),
	}
}

func (t *tentative) lookup(hash uint64) uint32 {
	for i := *t.byHash.head(uint32(hash)); i != 0; {
		b := t.blocks.at(i)
		if b.hash == hash {
			return i
		}
		i = b.chain
	}
	return 0
}

func pairKey(block uint32, s state.Slot) uint32 {
	hi, lo := bits.Mul64(uint64(block)<<16|uint64(s), 0x9E3779B97F4A7C15)
	return uint32(hi) ^ uint32(lo>>32)
}

func (t *tentative) find(block uint32, s state.Slot) uint32 {
	for i := *t.byPair.head(pairKey(block, s)); i != 0; {
		p := t.pairs.at(i)
		if p.block == block && p.slot == s {
			return i
		}
		i = p.chain
	}
	return 0
}

// expect counts one request of s for a block; false at the bound.
func (t *tentative) expect(hash uint64, s state.Slot, generation uint32) bool {
	block := t.lookup(hash)
	pair := uint32(0)
	if block != 0 {
		pair = t.find(block, s)
	}
	if pair == 0 {
		if t.freeP == 0 && t.pairs.full() {
			return false
		}
		if block == 0 {
			block = t.addBlock(hash)
		}
		pair = t.addPair(block, s, generation)
	}
	p := t.pairs.at(pair)
	p.renew(generation)
	p.live++
	t.blocks.at(block).requests++
	return true
}

// renew sets apart what a void has made stale.
func (p *awaitedPair) renew(generation uint32) {
	if p.generation != generation {
		p.stale += p.live
		p.live, p.generation = 0, generation
	}
}

func (t *tentative) addBlock(hash uint64) uint32 {
	i := t.free
	if i != 0 {
		t.free = t.blocks.at(i).chain
	} else {
		i = t.blocks.fresh()
		t.byHash.grow(func(i uint32) (uint32, *uint32) {
			b := t.blocks.at(i)
			return uint32(b.hash), &b.chain
		})
	}
	head := t.byHash.head(uint32(hash))
	*t.blocks.at(i) = awaitedBlock{hash: hash, chain: *head}
	*head = i
	t.inUseBl++
	return i
}

func (t *tentative) addPair(block uint32, s state.Slot, generation uint32) uint32 {
	i := t.freeP
	if i != 0 {
		t.freeP = t.pairs.at(i).chain
	} else {
		i = t.pairs.fresh()
		t.byPair.grow(func(i uint32) (uint32, *uint32) {
			p := t.pairs.at(i)
			return pairKey(p.block, p.slot), &p.chain
		})
	}
	head, b := t.byPair.head(pairKey(block, s)), t.blocks.at(block)
	*t.pairs.at(i) = awaitedPair{block: block, slot: s, generation: generation, chain: *head, next: b.pairs}
	*head = i
	if b.pairs != 0 {
		t.pairs.at(b.pairs).previous = i
	}
	b.pairs = i
	b.count++
	t.inUse++
	t.count.Add(1)
	return i
}

// unexpect takes back one request of s. Which one is not said: a stale one, if
// there is any, since it began earlier.
func (t *tentative) unexpect(hash uint64, s state.Slot, generation uint32) {
	block := t.lookup(hash)
	if block == 0 {
		return
	}
	pair := t.find(block, s)
	if pair == 0 {
		return
	}
	t.blocks.at(block).requests--
	p := t.pairs.at(pair)
	p.renew(generation)
	if p.stale > 0 {
		p.stale--
	} else {
		p.live--
	}
	if p.live+p.stale == 0 {
		t.removePair(pair, p)
	}
}

func (t *tentative) removePair(i uint32, p *awaitedPair) {
	b := t.blocks.at(p.block)
	if p.next != 0 {
		t.pairs.at(p.next).previous = p.previous
	}
	if p.previous != 0 {
		t.pairs.at(p.previous).next = p.next
	} else {
		b.pairs = p.next
	}
	b.count--
	if b.count == 0 {
		t.removeBlock(p.block, b)
	}
	link := t.byPair.head(pairKey(p.block, p.slot))
	for *link != i {
		link = &t.pairs.at(*link).chain
	}
	*link = p.chain
	*p = awaitedPair{chain: t.freeP}
	t.freeP = i
	t.inUse--
	t.count.Add(-1)
}

func (t *tentative) removeBlock(i uint32, b *awaitedBlock) {
	link := t.byHash.head(uint32(b.hash))
	for *link != i {
		link = &t.blocks.at(*link).chain
	}
	*link = b.chain
	*b = awaitedBlock{chain: t.free}
	t.free = i
	t.inUseBl--
}
