package feed

import (
	"cmp"
	"slices"
)

// perBatch is what a batch costs beside its payload.
const perBatch = 128

// pending are live batches that wait for a replay, by number, each once.
type pending struct {
	max   int // bytes
	batch []batch
	bytes int
	// lossy says that a batch was refused: after the replay there is more to ask for.
	lossy bool
}

// add keeps b unless it is there already. At the bound it is refused: those that
// are there come first. Batches below floor are let go before.
func (p *pending) add(b batch, floor uint64) bool {
	cost := len(b.payload) + perBatch
	if p.bytes+cost > p.max {
		p.dropBelow(floor)
	}
	if p.bytes+cost > p.max && len(p.batch) > 0 {
		p.lossy = true
		return false
	}
	i, found := slices.BinarySearchFunc(p.batch, b.seq, func(b batch, seq uint64) int {
		return cmp.Compare(b.seq, seq)
	})
	if !found {
		p.batch = slices.Insert(p.batch, i, b)
		p.bytes += cost
	}
	return true
}

func (p *pending) dropBelow(floor uint64) {
	for len(p.batch) > 0 && p.batch[0].seq < floor {
		p.pop()
	}
}

// first is the lowest; nil if there is none.
func (p *pending) first() *batch {
	if len(p.batch) == 0 {
		return nil
	}
	return &p.batch[0]
}

// end is the number after the highest; 0 if there is none.
func (p *pending) end() uint64 {
	if len(p.batch) == 0 {
		return 0
	}
	return p.batch[len(p.batch)-1].seq + 1
}

func (p *pending) pop() batch {
	b := p.batch[0]
	p.batch[0] = batch{}
	p.batch = p.batch[1:]
	p.bytes -= len(b.payload) + perBatch
	return b
}

func (p *pending) clear() {
	p.batch, p.bytes, p.lossy = nil, 0, false
}
