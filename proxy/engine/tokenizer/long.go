package tokenizer

// mergeLong does what mergeShort does, for words of any length: the symbols are a
// list linked by index, and a heap has the pairs that merge. A pair in the heap is
// stale once one of its symbols has changed.
func (b *bpe) mergeLong(symbols []uint32) int {
	w := longWord{bpe: b, symbols: symbols, next: make([]int32, len(symbols)), prev: make([]int32, len(symbols))}
	for i := range symbols {
		w.next[i], w.prev[i] = int32(i+1), int32(i-1)
	}
	w.next[len(symbols)-1] = -1
	for i := range len(symbols) - 1 {
		if v := b.merges.get(symbols[i], symbols[i+1]); v != noPair {
			w.heap = append(w.heap, candidate{v, int32(i)})
		}
	}
	for i := len(w.heap)/2 - 1; i >= 0; i-- {
		w.heap.down(i)
	}
	for len(w.heap) > 0 {
		w.apply(w.heap.pop())
	}
	n := 0
	for i := int32(0); i >= 0; i = w.next[i] {
		symbols[n] = symbols[i]
		n++
	}
	return n
}

type longWord struct {
	bpe        *bpe
	symbols    []uint32
	next, prev []int32 // -1 at the ends; prev is -2 where the symbol is gone
	heap       candidates
}

const gone = -2

// apply merges a candidate, if it still is one.
func (w *longWord) apply(c candidate) {
	i := c.at
	j := w.next[i]
	if w.prev[i] == gone || j < 0 || w.bpe.merges.get(w.symbols[i], w.symbols[j]) != c.value {
		return
	}
	w.symbols[i] = uint32(c.value)
	w.next[i] = w.next[j]
	w.prev[j] = gone
	if w.next[i] >= 0 {
		w.prev[w.next[i]] = i
		w.push(i, w.next[i])
	}
	if w.prev[i] >= 0 {
		w.push(w.prev[i], i)
	}
}

func (w *longWord) push(i, j int32) {
	if v := w.bpe.merges.get(w.symbols[i], w.symbols[j]); v != noPair {
		w.heap.push(candidate{v, i})
	}
}

// candidate is a pair that merges: at and the symbol after it.
type candidate struct {
	value uint64 // rank << 32 | token
	at    int32
}

// candidates is a heap: the lowest rank first, of equals the leftmost. The standard
// library's would allocate for each candidate.
type candidates []candidate

func (c candidates) less(i, j int) bool {
	return c[i].value < c[j].value || c[i].value == c[j].value && c[i].at < c[j].at
}

func (c *candidates) push(x candidate) {
	*c = append(*c, x)
	h := *c
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (c *candidates) pop() candidate {
	h := *c
	first, last := h[0], len(h)-1
	h[0] = h[last]
	*c = h[:last]
	(*c).down(0)
	return first
}

func (c candidates) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(c) {
			return
		}
		if child+1 < len(c) && c.less(child+1, child) {
			child++
		}
		if !c.less(child, i) {
			return
		}
		c[i], c[child] = c[child], c[i]
		i = child
	}
}
