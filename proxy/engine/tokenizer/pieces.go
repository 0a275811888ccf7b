package tokenizer

import (
	"strings"
	"sync"
)

const (
	// maxRemembered bounds the pieces that are remembered, in bytes.
	maxRemembered = 64 << 20
	// minPiece is the least that is worth it; pieceBytes is what one costs besides.
	minPiece   = 64
	pieceBytes = 128
)

// pieces remembers the tokens of the pieces between added tokens, each of which is
// tokenized without regard to the others. A template marks where each message of a
// conversation begins and ends by added tokens, so a next turn repeats all pieces but its
// last, and only that is tokenized anew.
//
// There are two generations. What is found in the old one goes over to the young one;
// when that is half of the bound, it becomes the old one, and the old one is forgotten.
type pieces struct {
	mu         sync.Mutex
	young, old map[string][]uint32
	bytes      int // of the young generation
	limit      int // of both
}

func newPieces(limit int) *pieces {
	return &pieces{young: map[string][]uint32{}, limit: limit}
}

// find returns the tokens of a piece, which are not to be changed.
func (p *pieces) find(text string) (ids []uint32, ok bool) {
	if len(text) < minPiece {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ids, ok = p.young[text]; ok {
		return ids, true
	}
	if ids, ok = p.old[text]; ok {
		p.put(strings.Clone(text), ids)
	}
	return ids, ok
}

// add remembers a copy of a piece's tokens.
func (p *pieces) add(text string, ids []uint32) {
	if len(text) < minPiece || cost(text, ids) > p.limit/2 {
		return
	}
	text, ids = strings.Clone(text), append([]uint32(nil), ids...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(text, ids)
}

func cost(text string, ids []uint32) int { return len(text) + 4*len(ids) + pieceBytes }

// put is given a text of its own: one that is part of a prompt would keep all of that.
func (p *pieces) put(text string, ids []uint32) {
	if _, ok := p.young[text]; ok {
		return
	}
	if c := cost(text, ids); p.bytes+c <= p.limit/2 {
		p.bytes += c
	} else {
		p.old, p.young, p.bytes = p.young, map[string][]uint32{}, c
	}
	p.young[text] = ids
}
