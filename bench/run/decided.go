package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvca/bench/gateway"
	"kvca/bench/nodes"
)

// What a node says of its reservations: how those were decided that an owner
// decided, and why the others were not.
const (
	decidedTotal  = "kvca_cluster_reservations_total"
	degradedTotal = "kvca_cluster_degraded_total"
)

// decided lists how reservations were decided between two readings of all nodes.
func decided(before, after []gateway.Metrics) string {
	var parts []string
	for _, m := range []struct{ metric, label, prefix string }{{decidedTotal, "kind", ""}, {degradedTotal, "reason", "degraded, "}} {
		grown := map[string]float64{}
		for _, one := range after {
			addBy(grown, one[m.metric], m.label, 1)
		}
		for _, one := range before {
			addBy(grown, one[m.metric], m.label, -1)
		}
		for _, name := range slices.Sorted(maps.Keys(grown)) {
			if grown[name] != 0 {
				parts = append(parts, fmt.Sprintf("%s%s: %.0f", m.prefix, name, grown[name]))
			}
		}
	}
	return orNone(strings.Join(parts, "; "))
}

func addBy(sum map[string]float64, samples []gateway.Sample, label string, sign float64) {
	for _, s := range samples {
		sum[s.Labels[label]] += sign * s.Value
	}
}

// decidedSoFar lists how a new cluster's reservations were decided.
func decidedSoFar(ctx context.Context, list []*nodes.Node) (string, error) {
	all, err := metricsOf(ctx, list)
	if err != nil {
		return "", err
	}
	return decided(nil, all), nil
}
