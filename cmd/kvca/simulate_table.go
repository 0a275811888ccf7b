package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"kvca/bench/sim"
	"kvca/bench/trace"
)

// writeResults writes what was played, and a line for each run.
func writeResults(out io.Writer, s *simulateSettings, t *trace.Trace, results []*sim.Result) error {
	fmt.Fprintf(out, "%s: %s; %s, %s of profile %s, seed %d\n\n",
		t.Name, count(t.Requests(), "request"), count(s.nodes, "node"), count(s.backends, "backend"), s.profile, s.seed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "POLICY\tHIT\tFOLLOW-UP HIT\tKEPT\tTTFT MEAN\tP50\tP90\tP99\tLOAD COV\tMAX/MEAN\tPEER B/S\tDEGRADED\tFAILED\tWALL\t")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%.3f\t%s\t%s\t%.3f s\t%.3f s\t%.3f s\t%.3f s\t%s\t%.3f\t%.0f\t%d\t%d\t%.1f s\t\n",
			named(r), r.HitRate, figure(r.FollowUpHitRate), figure(r.Kept), r.TTFT.Mean, r.TTFT.P50, r.TTFT.P90, r.TTFT.P99,
			figure(r.LoadCoV), r.MaxMeanComputed, r.PeerBytesPerS, r.Degraded, r.Failed, r.WallS)
	}
	return w.Flush()
}

// named is the run's policy, and whether it went by events.
func named(r *sim.Result) string {
	if r.Precise {
		return r.Policy + " (precise)"
	}
	return r.Policy
}

// figure is a dash where there was nothing to measure: no follow-ups, no word in
// the trace of what they follow, never a request a backend.
func figure(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", x)
}

// count is a number of things for people.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
