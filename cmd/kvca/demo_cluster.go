package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// ownerCalls is the histogram of how long owners took to answer.
const ownerCalls = "kvca_cluster_owner_call_seconds"

// clusterLines tell how the nodes of a gateway get on with each other.
func clusterLines(nodes []*node) string {
	alive, refused, degraded := len(nodes), uint64(0), uint64(0)
	var calls latency
	for _, n := range nodes {
		if n.peers == nil {
			return ""
		}
		s := n.peers.Status()
		alive = min(alive, linked(s.Members))
		refused += s.Refused
		degraded += s.Degraded
		calls.add(n.metrics, ownerCalls)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "cluster of kvca: %d of %d nodes, each turn to a random one\n  ", alive, len(nodes))
	if calls.count > 0 {
		fmt.Fprintf(&b, "%d owner calls, p50 %.2f ms, p99 %.2f ms; ", calls.count, 1e3*calls.quantile(0.5), 1e3*calls.quantile(0.99))
	}
	fmt.Fprintf(&b, "%d refused, %d degraded\n", refused, degraded)
	return b.String()
}

// indexLine tells what the precise index of a gateway is worth, where it has one.
func indexLine(nodes []*node) string {
	held := nodes[0].index.Stats()
	if held.Sources == 0 {
		return ""
	}
	predicted, reported, fallbacks := 0.0, 0.0, 0.0
	for _, n := range nodes {
		predicted += total(n.metrics, "kvca_index_predicted_tokens_total")
		reported += total(n.metrics, "kvca_index_reported_tokens_total")
		fallbacks += total(n.metrics, "kvca_index_fallback_total")
	}
	return fmt.Sprintf("precise index: %d blocks of %d sources; cached tokens predicted %.0f, reported %.0f; %.0f decisions without it\n",
		held.Entries, held.Sources, predicted, reported, fallbacks)
}

// total is the sum of a counter's series.
func total(from prometheus.Gatherer, name string) (sum float64) {
	families, _ := from.Gather() // what it can't gather is not shown
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

// latency adds up a histogram of several registries.
type latency struct {
	buckets map[float64]uint64 // cumulative, by upper bound
	count   uint64
}

// add adds all series of a histogram.
func (l *latency) add(from prometheus.Gatherer, name string) {
	families, _ := from.Gather() // what it can't gather is not shown
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			h := m.GetHistogram()
			l.count += h.GetSampleCount()
			for _, b := range h.GetBucket() {
				if l.buckets == nil {
					l.buckets = make(map[float64]uint64)
				}
				l.buckets[b.GetUpperBound()] += b.GetCumulativeCount()
			}
		}
	}
}

// quantile is where the share q of the values lies below, as well as the buckets
// tell; beyond the last bound it is that bound.
func (l *latency) quantile(q float64) float64 {
	bounds := make([]float64, 0, len(l.buckets))
	for bound := range l.buckets {
		bounds = append(bounds, bound)
	}
	slices.Sort(bounds)
	rank, lower, below := q*float64(l.count), 0.0, uint64(0)
	for _, bound := range bounds {
		if n := l.buckets[bound]; float64(n) >= rank && n > below {
			return lower + (bound-lower)*(rank-float64(below))/float64(n-below)
		}
		lower, below = bound, l.buckets[bound]
	}
	return lower
}
