package tokenizer

import (
	"hash/maphash"
	"sync/atomic"
)

// bpe merges the bytes of a word into tokens.
type bpe struct {
	bytes  [256]uint32 // the token of each byte, none where it has none
	merges pairs
	words  map[string]uint32 // words that are tokens whatever the merges say; nil: none
	seed   maphash.Seed
	recent [recentWords]atomic.Pointer[recentWord]
}

const (
	none = ^uint32(0)
	// recentWords and recentBytes bound the memory of words: 32,768 of up to 64 bytes.
	recentWords = 1 << 15
	recentBytes = 64
	// shortWord is up to how many symbols looking at each pair is faster than a heap.
	shortWord = 48
)

type recentWord struct {
	text string
	ids  []uint32
}

// append appends the tokens of a word.
func (b *bpe) append(dst []uint32, word string) []uint32 {
	if len(word) == 1 {
		if id := b.bytes[word[0]]; id != none {
			return append(dst, id)
		}
		return dst
	}
	if len(word) > recentBytes {
		return b.merge(dst, word)
	}
	place := &b.recent[maphash.String(b.seed, word)%recentWords]
	if known := place.Load(); known != nil && known.text == word {
		return append(dst, known.ids...)
	}
	start := len(dst)
	dst = b.merge(dst, word)
	// The word is part of a whole request, and must not keep it alive.
	place.Store(&recentWord{string([]byte(word)), append([]uint32(nil), dst[start:]...)})
	return dst
}

func (b *bpe) merge(dst []uint32, word string) []uint32 {
	if id, ok := b.words[word]; ok {
		return append(dst, id)
	}
	start := len(dst)
	for i := range len(word) {
		if id := b.bytes[word[i]]; id != none {
			dst = append(dst, id)
		}
	}
	symbols := dst[start:]
	if len(symbols) > shortWord {
		return dst[:start+b.mergeLong(symbols)]
	}
	return dst[:start+b.mergeShort(symbols)]
}

// mergeShort merges in place the pair of the lowest rank, the leftmost of equals,
// until no pair is left that merges; it gives the number of symbols then.
func (b *bpe) mergeShort(symbols []uint32) int {
	n := len(symbols)
	var ranks [shortWord]uint64 // of the pair that begins at i
	for i := range n - 1 {
		ranks[i] = b.merges.get(symbols[i], symbols[i+1])
	}
	for n > 1 {
		best := 0
		for i := 1; i < n-1; i++ {
			if ranks[i] < ranks[best] {
				best = i
			}
		}
		if ranks[best] == noPair {
			break
		}
		symbols[best] = uint32(ranks[best])
		copy(symbols[best+1:n], symbols[best+2:n])
		copy(ranks[best:n-1], ranks[best+1:n-1])
		n--
		if best < n-1 {
			ranks[best] = b.merges.get(symbols[best], symbols[best+1])
		}
		if best > 0 {
			ranks[best-1] = b.merges.get(symbols[best-1], symbols[best])
		}
	}
	return n
}
