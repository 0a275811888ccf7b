package publish

// ring keeps the last batches, oldest first.
type ring struct {
	bound   int
	batches []batch
	oldest  int // once bound are kept
}

func (r *ring) push(b batch) {
	if len(r.batches) < r.bound {
		r.batches = append(r.batches, b)
		return
	}
	r.batches[r.oldest] = b
	r.oldest = (r.oldest + 1) % r.bound
}

// from copies out the batches numbered start and above.
func (r *ring) from(start uint64) []batch {
	var out []batch
	for i := range r.batches {
		if b := r.batches[(r.oldest+i)%len(r.batches)]; b.seq >= start {
			out = append(out, b)
		}
	}
	return out
}
