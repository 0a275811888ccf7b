package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Sample is the outcomes of one case, one per seed, in the seeds' order. It may
// be empty: then its figures are not numbers.
type Sample []*Outcome

// Mean is a metric's mean over the seeds.
func (s Sample) Mean(m Metric) float64 {
	sum := 0.0
	for _, o := range s {
		sum += m.Of(&o.Result)
	}
	return sum / float64(len(s)) // 0/0 is NaN
}

// Spread is a metric's least and largest value.
func (s Sample) Spread(m Metric) (low, high float64) {
	low, high = math.NaN(), math.NaN()
	for i, o := range s {
		v := m.Of(&o.Result)
		if i == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// Cell is the mean and, of several seeds, the spread.
func (s Sample) Cell(m Metric) string {
	low, high := s.Spread(m)
	return withSpread(s.Mean(m), low, high, m.Form)
}

// Point is a metric with its spread, at x of a plot.
func (s Sample) Point(x float64, m Metric) Point {
	low, high := s.Spread(m)
	return Point{X: x, Y: s.Mean(m), Low: low, High: high}
}

// change is by how much s is above base in a metric, as a share of base, from the
// means; low and high are of the pairs with the same seed.
func (s Sample) change(base Sample, m Metric) (mean, low, high float64) {
	mean = s.Mean(m)/base.Mean(m) - 1
	low, high = math.NaN(), math.NaN()
	for _, o := range s {
		i := slices.IndexFunc(base, func(b *Outcome) bool { return b.Result.Seed == o.Result.Seed })
		if i < 0 {
			continue
		}
		v := m.Of(&o.Result)/m.Of(&base[i].Result) - 1
		if math.IsNaN(low) {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return mean, low, high
}

// absent is what stands for a figure that there is none of.
const absent = "-"

func withSpread(mean, low, high float64, form func(float64) string) string {
	text := form(mean)
	if from, to := form(low), form(high); from != to {
		text = fmt.Sprintf("%s (%s to %s)", text, from, to)
	}
	return text
}

func isFigure(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// digits3 has three significant digits, without an exponent.
func digits3(v float64) string {
	if !isFigure(v) {
		return absent
	}
	if v == 0 {
		return "0"
	}
	decimals := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', min(max(decimals, 0), 6), 64)
}

func decimals(n int) func(float64) string {
	return func(v float64) string {
		if !isFigure(v) {
			return absent
		}
		return strconv.FormatFloat(v, 'f', n, 64)
	}
}

var (
	decimals2 = decimals(2)
	decimals3 = decimals(3)
)

// percent is a share with its sign.
func percent(v float64) string {
	if !isFigure(v) {
		return absent
	}
	text := fmt.Sprintf("%+.1f %%", 100*v)
	if text == "-0.0 %" {
		return "+0.0 %"
	}
	return text
}

// geometricMean is of the values that are figures; not a number where there is
// none.
func geometricMean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if isFigure(v) && v > 0 {
			sum += math.Log(v)
			n++
		}
	}
	return math.Exp(sum / float64(n))
}
