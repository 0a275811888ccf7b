package main

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestQuantilesOverSeveralNodes(t *testing.T) {
	var l latency
	for range 2 {
		reg := prometheus.NewRegistry()
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h_seconds", Buckets: []float64{1, 2, 4}})
		reg.MustRegister(h)
		for i := range 100 {
			h.Observe(float64(i) / 50) // 51 up to 1, 49 up to 2
		}
		h.Observe(100)
		l.add(reg, "h_seconds")
		l.add(reg, "other")
	}
	for q, want := range map[float64]float64{0.25: 0.5, 0.5: 1, 0.9: 1.8, 1: 4} {
		if got := l.quantile(q); math.Abs(got-want) > 0.05 {
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
	if l.count != 202 {
		t.Errorf("count %d", l.count)
	}
}
