package main

import (
	"context"
	"fmt"
	"time"

	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/nodes"
	"kvca/bench/report"
)

// What a node says of its links.
const (
	sentBytes     = "kvca_link_sent_bytes_total"
	receivedBytes = "kvca_link_received_bytes_total"
)

// lanes are the kinds of what is sent over a link.
var lanes = []string{"urgent", "deltas", "bulk"}

// runTraffic measures what nodes send each other, by their own counters.
func runTraffic(ctx context.Context, args []string) error {
	s := newSettings("traffic", "")
	size := s.flags.Int("nodes", clusterNodes, "nodes, which get the requests evenly")
	rate := s.flags.Float64("rate", 1000, "requests a second of all nodes together")
	bytes := s.flags.Int("bytes", 32<<10, "length of a prompt; four bytes are about a token")
	span := s.flags.Duration("time", 20*time.Second, "time that is measured, of each kind of prompt")
	if err := s.parse(args); err != nil {
		return err
	}
	return onCluster(ctx, s, clusterFakes(0), *size, func(r *rig, c *nodes.Cluster) error {
		r.Printf("%d nodes, %.0f requests a second of %d bytes in all, %d backends; bytes of frames between nodes, a node and a second\n\n",
			*size, *rate, *bytes, clusterBackends)
		t := &report.Table{Header: []string{"prompts", "requests/s", "sent, kB/s", "received, kB/s"}}
		for _, lane := range lanes {
			t.Header = append(t.Header, lane+", kB/s")
		}
		t.Header = append(t.Header, "sent per request, bytes", "CPU, us")
		for _, kind := range []struct {
			name     string
			requests load.Requests
		}{
			{"all new", load.Distinct(model, *bytes, 1<<40, s.seed)},
			{"all known", load.Same(load.Chat(model, *bytes, false, s.seed))},
		} {
			loop := load.Closed{Connections: connections, Requests: kind.requests, Rate: *rate, Duration: *span, Timeout: requestTime}
			if err := trafficRow(ctx, c, t, kind.name, loop); err != nil {
				return err
			}
		}
		r.Printf("%s", t)
		return atRest(ctx, c.Nodes)
	})
}

func trafficRow(ctx context.Context, c *nodes.Cluster, t *report.Table, name string, loop load.Closed) error {
	warm := loop
	warm.Duration = loop.Duration / 10
	if _, err := evenly(ctx, c.Nodes, warm); err != nil {
		return err
	}
	before, err := metricsOf(ctx, c.Nodes)
	if err != nil {
		return err
	}
	used, err := cpuOf(c.Nodes)
	if err != nil {
		return err
	}
	res, err := evenly(ctx, c.Nodes, loop)
	if err != nil {
		return err
	}
	usedAfter, err := cpuOf(c.Nodes)
	if err != nil {
		return err
	}
	after, err := metricsOf(ctx, c.Nodes)
	if err != nil {
		return err
	}
	grown := func(metric string, labels ...string) float64 {
		return sumOf(after, metric, labels...) - sumOf(before, metric, labels...)
	}
	perNode := func(bytes float64) string {
		return fmt.Sprintf("%.0f", bytes/1e3/float64(len(c.Nodes))/res.Elapsed.Seconds())
	}
	row := []any{name, fmt.Sprintf("%.0f", float64(res.OK)/res.Elapsed.Seconds()), perNode(grown(sentBytes)), perNode(grown(receivedBytes))}
	for _, lane := range lanes {
		row = append(row, perNode(grown(sentBytes, "lane", lane)))
	}
	t.Add(append(row, fmt.Sprintf("%.0f", grown(sentBytes)/float64(max(res.OK, 1))),
		(usedAfter-used).Microseconds()/max(res.OK, 1))...)
	return nil
}

func sumOf(all []gateway.Metrics, metric string, labels ...string) (sum float64) {
	for _, m := range all {
		sum += m.Sum(metric, labels...)
	}
	return sum
}
