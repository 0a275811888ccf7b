package load

import (
	"math"
	"math/bits"
	"time"
)

// subBuckets divides each power of two: a quantile is right to 3 %.
const (
	subBits    = 5
	subBuckets = 1 << subBits
)

// Histogram counts durations in buckets whose width grows with them. The zero
// Histogram is ready; it belongs to one goroutine.
type Histogram struct {
	counts [64 * subBuckets]uint32
	total  int64
	max    time.Duration
}

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucket(d)]++
	h.total++
	h.max = max(h.max, d)
}

// Merge adds what o has counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.max = max(h.max, o.max)
}

// Count is the number of durations.
func (h *Histogram) Count() int64 { return h.total }

// Max is the longest duration.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile is the upper edge of the bucket that holds the q-th of all durations,
// 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	want := int64(math.Ceil(q * float64(h.total)))
	var seen int64
	for i, n := range h.counts {
		seen += int64(n)
		if n > 0 && seen >= want {
			return min(edge(i), h.max)
		}
	}
	return h.max
}

func bucket(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < subBuckets {
		return int(n)
	}
	shift := bits.Len64(n) - subBits - 1
	return (shift+1)<<subBits + int(n>>shift)&(subBuckets-1)
}

// edge is the largest duration of a bucket.
func edge(i int) time.Duration {
	if i < subBuckets {
		return time.Duration(i)
	}
	shift := i>>subBits - 1
	return time.Duration((uint64(i&(subBuckets-1)|subBuckets)+1)<<shift - 1)
}
