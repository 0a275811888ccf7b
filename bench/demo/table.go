package demo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Row is one gateway of a table.
type Row struct {
	Name string
	*Snapshot
}

const header = "" +
	"               req/s  follow-ups  tokens from  TTFT ms        requests  errors\n" +
	"                            kept        cache   mean    p90\n"

// Table shows gateways beside each other, in lines of at most 80 columns.
func Table(rows []Row) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(header)
	fmt.Fprintf(&b, "last %.0f s\n", rows[0].RecentSpan.Seconds())
	for _, r := range rows {
		line(&b, r.Name, &r.Recent, r.RecentSpan)
	}
	fmt.Fprintf(&b, "since the start, %.0f s\n", rows[0].Elapsed.Seconds())
	for _, r := range rows {
		line(&b, r.Name, &r.Total, r.Elapsed)
	}
	shares(&b, rows[0])
	return b.String()
}

func line(b *strings.Builder, name string, c *Counts, span time.Duration) {
	perSecond := float64(c.Requests) / max(span.Seconds(), 1e-3)
	fmt.Fprintf(b, "  %-11s %6.1f  %10s  %11s  %s  %s  %8d  %6d\n", name, perSecond,
		percent(c.KeptShare(), c.FollowUps), percent(c.CachedShare(), c.Prompt),
		millis(c.MeanTTFT(), c.Requests), millis(c.P90TTFT(), c.Requests), c.Requests, c.Errors)
}

// percent is a dash where there is nothing to have a share of.
func percent(share float64, of int64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

func millis(d time.Duration, of int64) string {
	if of == 0 {
		return "    -"
	}
	return fmt.Sprintf("%5.0f", float64(d)/float64(time.Millisecond))
}

// perLine is how many backends' shares fit on a line.
const perLine = 8

// shares shows how the requests of one gateway are spread over its backends.
func shares(b *strings.Builder, r Row) {
	if len(r.Backends) == 0 {
		return
	}
	fmt.Fprintf(b, "requests per backend, %s, in %%\n", r.Name)
	ids := slices.SortedFunc(maps.Keys(r.Backends), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) // sim-2 before sim-10
	})
	for part := range slices.Chunk(ids, perLine) {
		for _, id := range part {
			fmt.Fprintf(b, "  %s %2.0f", id, 100*share(r.Backends[id], r.Total.Requests))
		}
		b.WriteByte('\n')
	}
}
