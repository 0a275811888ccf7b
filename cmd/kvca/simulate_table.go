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
	fmt.Fprintf(out, "%s: %d requests; %s, %s of profile %s, seed %d\n\n",
		t.Name, t.Requests(), count(s.nodes, "node"), count(s.backends, "backend"), s.profile, s.seed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "POLICY\tHIT\tFOLLOW-UP HIT\tKEPT\tTTFT MEAN\tP50\tP90\tP99\tLOAD COV\tMAX/MEAN\tPEER B/S\tDEGRADED\tFAILED\tWALL\t")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%.3f\t%.3f\t%s\t%.3f s\t%.3f s\t%.3f s\t%.3f s\t%.3f\t%.3f\t%.0f\t%d\t%d\t%.1f s\t\n",
			r.Policy, r.HitRate, r.FollowUpHitRate, kept(r), r.TTFT.Mean, r.TTFT.P50, r.TTFT.P90, r.TTFT.P99,
			r.LoadCoV, r.MaxMeanComputed, r.PeerBytesPerS, r.Degraded, r.Failed, r.WallS)
	}
	return w.Flush()
}

// kept is a dash where the trace does not say what a follow-up follows.
func kept(r *sim.Result) string {
	if r.Kept == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", r.Kept)
}

// count is a number of things for people.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
