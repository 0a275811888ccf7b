package trace

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// draw is a source of chance. Each session has its own, so that nothing one session draws moves another.
type draw struct{ *rand.Rand }

// seeded is the stream-th source of a seed.
func seeded(seed, stream uint64) draw { return draw{rand.New(rand.NewPCG(seed, stream))} }

// exponential is a time of that mean.
func (d draw) exponential(mean time.Duration) time.Duration {
	return time.Duration(d.ExpFloat64() * float64(mean))
}

// spreadSizes is the standard deviation of a log-normal size's logarithm: at 1 the median is 0.6 of the mean, and one in 25 is above
// thrice the mean.
const spreadSizes = 1.0

// size is a number of tokens of that mean, log-normal, from 1 to 16 times the mean.
func (d draw) size(mean int) int {
	x := math.Exp(math.Log(float64(mean)) - spreadSizes*spreadSizes/2 + spreadSizes*d.NormFloat64())
	return min(max(int(math.Round(x)), 1), 16*mean)
}

// arrivals are the times of a Poisson process of that many a second, below duration; as many as a file may have at most.
func (d draw) arrivals(rate float64, duration time.Duration) []time.Duration {
	var times []time.Duration
	for at := d.gap(rate); at < duration.Seconds() && len(times) < maxLines; at += d.gap(rate) {
		times = append(times, time.Duration(at*1e9))
	}
	return times
}

// filling are n times with exponential gaps, stretched so that the last is at duration.
func (d draw) filling(n int, duration time.Duration) []time.Duration {
	sums, sum := make([]float64, n), 0.0
	for i := range sums {
		sum += d.ExpFloat64()
		sums[i] = sum
	}
	times := make([]time.Duration, n)
	for i, s := range sums {
		times[i] = time.Duration(s / sum * float64(duration))
	}
	return times
}

// gap is the time to the next of so many a second, in s. At a rate of 0 it never comes.
func (d draw) gap(rate float64) float64 { return d.ExpFloat64() / max(rate, 0) }

// zipf draws from n, of which the k-th (from 1) has a weight of 1/k^s. rand.Zipf wants s above 1.
type zipf []float64 // sums of weights

func newZipf(n int, s float64) zipf {
	z, sum := make(zipf, n), 0.0
	for k := range z {
		sum += math.Pow(float64(k+1), -s)
		z[k] = sum
	}
	return z
}

func (z zipf) of(d draw) int {
	return min(sort.SearchFloat64s(z, d.Float64()*z[len(z)-1]), len(z)-1)
}
