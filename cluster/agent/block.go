package agent

import "kvca/state/kvindex"

// block is one block of an engine as a Mirror knows it.
type block struct {
	hash uint64
	// up is its parent, nil for a block that begins a prompt; children counts the
	// blocks whose parent it is.
	up       *block
	children int32
	size     int32 // of the block in tokens, as the event said
	tokens   []uint32
	extra    uint64
	extras   bool
	lora     string
	salt     string
	// counts is how often it was stored in each tier and not removed.
	counts [kvindex.Tiers]uint32
	// told has the tiers that the node knows of; renew says that it knows less of the
	// block than is known here.
	told  uint8
	renew bool
	// waiting is whether it stands in the queue.
	waiting bool

	before, after *block // in the order of parents first
	prev, next    *block // in the queue
}

// blockBytes is what a block takes beside its tokens: itself, its place in the
// map, and what allocation rounds up.
const blockBytes = 232

func (b *block) bytes() int64 { return blockBytes + 4*int64(cap(b.tokens)) }

// held has a bit for each tier that the engine holds it in.
func (b *block) held() (tiers uint8) {
	for t, n := range b.counts {
		if n > 0 {
			tiers |= 1 << t
		}
	}
	return tiers
}

// idle is whether nobody needs it: it is not held, the node does not know it, and
// no child does.
func (b *block) idle() bool { return b.told == 0 && b.children == 0 && b.held() == 0 }

// order lists blocks, each after its parent.
type order struct{ first, last *block }

func (o *order) add(b *block) {
	if b.before = o.last; o.last == nil {
		o.first = b
	} else {
		o.last.after = b
	}
	o.last = b
}

func (o *order) remove(b *block) {
	if b.before == nil {
		o.first = b.after
	} else {
		b.before.after = b.after
	}
	if b.after == nil {
		o.last = b.before
	} else {
		b.after.before = b.before
	}
	b.before, b.after = nil, nil
}

// queue lists the blocks that the node is to be told of.
type queue struct{ first, last *block }

func (q *queue) push(b *block) {
	if b.waiting {
		return
	}
	b.waiting, b.prev = true, q.last
	if q.last == nil {
		q.first = b
	} else {
		q.last.next = b
	}
	q.last = b
}

func (q *queue) remove(b *block) {
	if !b.waiting {
		return
	}
	if b.prev == nil {
		q.first = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next == nil {
		q.last = b.prev
	} else {
		b.next.prev = b.prev
	}
	b.waiting, b.prev, b.next = false, nil, nil
}
