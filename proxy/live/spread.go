package live

import (
	"math"
	"math/bits"
	"time"
)

// Bins are eight a doubling, from 128 us to eighteen minutes: the middle of one is
// within a sixteenth of whatever was counted there.
const (
	binBits    = 3
	lowestBits = 7 // of a microsecond count
	doublings  = 23
	binCount   = doublings << binBits
)

// spread is a histogram of durations. Shorter ones than its first bin's are in it,
// longer ones than its last one's as well.
type spread struct {
	count uint32
	bins  [binCount]uint32
}

func binOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 1<<lowestBits))
	exp := bits.Len64(us) - 1
	return min((exp-lowestBits)<<binBits|int(us>>(exp-binBits))&(1<<binBits-1), binCount-1)
}

func middleOf(bin int) time.Duration {
	exp := bin>>binBits + lowestBits
	step := int64(1) << (exp - binBits)
	from := int64(1<<binBits|bin&(1<<binBits-1)) * step
	return time.Duration(from+step/2) * time.Microsecond
}

func (s *spread) add(d time.Duration) {
	s.count++
	s.bins[binOf(d)]++
}

func (s *spread) merge(o *spread) {
	s.count += o.count
	for i, n := range o.bins {
		s.bins[i] += n
	}
}

// quantile is a duration that the share q of all are not above; 0 where none was
// counted.
func (s *spread) quantile(q float64) time.Duration {
	rank := max(uint32(math.Ceil(q*float64(s.count))), 1)
	for i, n := range s.bins {
		if n >= rank {
			return middleOf(i)
		}
		rank -= n
	}
	return 0
}
