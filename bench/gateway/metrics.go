package gateway

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics is what a gateway's /metrics said at one time, by name.
type Metrics map[string][]Sample

// Sample is one child of a metric. Value is that of a counter or a gauge.
type Sample struct {
	Labels map[string]string
	Value  float64
	// Histogram is what a histogram counted.
	Histogram Histogram
}

// Histogram counts durations in buckets of the product's choice: Edges in seconds,
// and how many are not above each. The last edge is infinite.
type Histogram struct {
	Edges  []float64
	Counts []uint64
}

// Metrics asks a gateway for its metrics.
func (r *Running) Metrics(ctx context.Context) (Metrics, error) {
	text, err := r.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	return parseMetrics(text)
}

func parseMetrics(text []byte) (Metrics, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	out := Metrics{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			s := Sample{Labels: map[string]string{}, Value: m.GetCounter().GetValue() + m.GetGauge().GetValue()}
			for _, l := range m.GetLabel() {
				s.Labels[l.GetName()] = l.GetValue()
			}
			for _, b := range m.GetHistogram().GetBucket() {
				s.Histogram.Edges = append(s.Histogram.Edges, b.GetUpperBound())
				s.Histogram.Counts = append(s.Histogram.Counts, b.GetCumulativeCount())
			}
			out[name] = append(out[name], s)
		}
	}
	return out, nil
}

// Sum adds up the values of a metric's children that have all the labels, given
// as name and value in turns.
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for _, s := range m[name] {
		if s.has(labels) {
			sum += s.Value
		}
	}
	return sum
}

// Histogram adds up a histogram's children that have all the labels.
func (m Metrics) Histogram(name string, labels ...string) (sum Histogram) {
	for _, s := range m[name] {
		if s.has(labels) {
			sum = sum.Plus(s.Histogram)
		}
	}
	return sum
}

func (s *Sample) has(labels []string) bool {
	for pair := range slices.Chunk(labels, 2) {
		if s.Labels[pair[0]] != pair[1] {
			return false
		}
	}
	return true
}

// Plus adds what o counted, in the same buckets.
func (h Histogram) Plus(o Histogram) Histogram { return h.combine(o, 1) }

// Minus takes away what o counted, an earlier reading of the same histogram.
func (h Histogram) Minus(o Histogram) Histogram { return h.combine(o, -1) }

func (h Histogram) combine(o Histogram, sign int64) Histogram {
	if len(o.Edges) == 0 {
		return h
	}
	sum := Histogram{Edges: o.Edges, Counts: make([]uint64, len(o.Counts))}
	copy(sum.Counts, h.Counts)
	for i, n := range o.Counts {
		sum.Counts[i] += uint64(sign * int64(n))
	}
	return sum
}

// Count is how many durations there are.
func (h Histogram) Count() uint64 {
	if len(h.Counts) == 0 {
		return 0
	}
	return h.Counts[len(h.Counts)-1]
}

// Quantile is where the q-th of all durations lies, as far as its bucket can tell:
// between lower, of which the duration is longer, and upper.
func (h Histogram) Quantile(q float64) (lower, upper time.Duration) {
	want := uint64(math.Ceil(q * float64(h.Count())))
	for i, n := range h.Counts {
		if n >= want && n > 0 {
			if i > 0 {
				lower = seconds(h.Edges[i-1])
			}
			return lower, seconds(h.Edges[i])
		}
	}
	return 0, 0
}

// seconds is a bucket's edge; that of the last is beyond all durations.
func seconds(edge float64) time.Duration {
	if math.IsInf(edge, 1) {
		return math.MaxInt64
	}
	return time.Duration(math.Round(edge * float64(time.Second)))
}
