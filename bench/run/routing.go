package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kvca/bench/report"
	"kvca/bench/routing"
)

// routed is one size of fleet and chain; most is what the p99 of a decision may
// take, 0 where nothing is promised.
type routed struct {
	backends, chain, decisions int
	most                       time.Duration
}

var routedSizes = []routed{
	{1000, 64, 10_000, 200 * time.Microsecond},
	{4000, 64, 10_000, 300 * time.Microsecond},
	{1000, 800, 2000, 0},
	{4000, 800, 2000, 0},
}

// runRouting measures decisions without HTTP.
func runRouting(ctx context.Context, args []string) (err error) {
	s := newSettings("routing", "")
	rounds := s.flags.Int("rounds", 3, "rounds, 1 to 5, of which the one with the median p99 is taken")
	blocks := s.flags.Int("blocks", 1<<20, "blocks in the map at the start")
	strict := s.flags.Bool("strict", false, "fail where a decision takes longer than is promised")
	if err := s.parse(args); err != nil {
		return err
	}
	out, err := s.report()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	out.Printf("Route alone (walk, choose, reserve), %d blocks in the map at the start; then learning and closing together; microseconds\n\n", *blocks)
	t := &report.Table{Header: []string{"backends", "chain", "goroutines", "requests", "p50", "p99", "max", "p99, CPU time", "p50 after", "p99 after", "promised p99"}}
	broken := false
	for _, size := range routedSizes {
		for _, goroutines := range []int{1, 2} {
			cfg := routing.Config{
				Backends: size.backends, Blocks: *blocks, Chain: size.chain, Decisions: size.decisions, Goroutines: goroutines, Seed: s.seed,
			}
			kept, err := routingRows(ctx, t, cfg, size.most, min(max(*rounds, 1), 5))
			if err != nil {
				return err
			}
			broken = broken || !kept
		}
	}
	out.Printf("%s", t)
	if broken && *strict {
		return errBroken
	}
	return nil
}

func routingRows(ctx context.Context, t *report.Table, cfg routing.Config, most time.Duration, rounds int) (kept bool, err error) {
	fleet, err := routing.New(cfg)
	if err != nil {
		return false, err
	}
	kept = true
	for _, shape := range routing.Shapes {
		var timings []routing.Timing
		for round := range rounds {
			timing, err := fleet.Measure(ctx, shape, uint64(round))
			if err != nil {
				return false, err
			}
			timings = append(timings, timing)
		}
		m := medianTiming(timings)
		verdict := ""
		if most > 0 {
			verdict = fmt.Sprintf("under %d: kept", most.Microseconds())
			if m.Route.P99 >= most {
				kept, verdict = false, fmt.Sprintf("under %d: BROKEN", most.Microseconds())
			}
		}
		t.Add(cfg.Backends, cfg.Chain, cfg.Goroutines, shape, micros(m.Route.P50), micros(m.Route.P99), micros(m.Route.Max), micros(m.CPU.P99),
			micros(m.Rest.P50), micros(m.Rest.P99), verdict)
	}
	if held := fleet.Held(); held != 0 {
		return false, fmt.Errorf("%d reservations are left: %w", held, errBroken)
	}
	return kept, nil
}

func medianTiming(timings []routing.Timing) routing.Timing {
	sorted := slices.SortedFunc(slices.Values(timings), func(a, b routing.Timing) int { return cmp.Compare(a.Route.P99, b.Route.P99) })
	return sorted[len(sorted)/2]
}

func micros(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e3) }
