package ledger

// Shortlist appends to dst the places in Order.Candidates of the n cheapest
// candidates as seen here, in no order, in one pass that begins at place begin and
// goes round: where more are equal than fit, those that come first stay, so a
// random begin draws among them.
func (l *Ledger) Shortlist(o *Order, n, begin int, dst []int32) []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := shortlist{places: dst, base: len(dst)}
	for k := range o.Candidates {
		i := begin + k
		if i >= len(o.Candidates) {
			i -= len(o.Candidates)
		}
		h.offer(int32(i), score(l.views, o, &o.Candidates[i]), n)
	}
	return h.places
}

// maxShortlist bounds a shortlist.
const maxShortlist = 256

// shortlist is a heap with the dearest on top.
type shortlist struct {
	places []int32
	base   int // places before it are not of the heap
	scores [maxShortlist]float64
}

func (h *shortlist) offer(place int32, score float64, n int) {
	size := len(h.places) - h.base
	if size < min(n, maxShortlist) {
		h.places = append(h.places, place)
		h.scores[size] = score
		h.up(size)
		return
	}
	if size > 0 && score < h.scores[0] {
		h.places[h.base], h.scores[0] = place, score
		h.down(size)
	}
}

func (h *shortlist) swap(i, j int) {
	h.scores[i], h.scores[j] = h.scores[j], h.scores[i]
	h.places[h.base+i], h.places[h.base+j] = h.places[h.base+j], h.places[h.base+i]
}

func (h *shortlist) up(i int) {
	for i > 0 && h.scores[(i-1)/2] < h.scores[i] {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h *shortlist) down(size int) {
	for i := 0; ; {
		child := 2*i + 1
		if child+1 < size && h.scores[child+1] > h.scores[child] {
			child++
		}
		if child >= size || h.scores[child] <= h.scores[i] {
			return
		}
		h.swap(i, child)
		i = child
	}
}
