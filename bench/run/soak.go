package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvca/bench/fake"
	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/process"
)

// soakBase is what kvca may take beyond the configured bound of its block map.
const soakBase = 64 << 20

// samples is what was seen of kvca while it was under load.
type samples struct {
	rss, mapBytes, maxBytes int64
	count                   int
}

// runSoak sends millions of distinct prompts and watches memory all the while.
func runSoak(ctx context.Context, args []string) (err error) {
	s := newSettings("soak", "")
	count := s.flags.Int64("count", 2_000_000, "distinct prompts")
	size := s.flags.Int("bytes", 3<<10, "length of each")
	limit := s.flags.Duration("limit", time.Hour, "bound on the time")
	if err := s.parse(args); err != nil {
		return err
	}
	r, err := newRig(ctx, s, fake.DefaultConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	g, err := r.start(ctx, "kvca")
	if err != nil {
		return err
	}
	defer g.Close()
	res, seen, err := underLoad(ctx, r, g, load.Closed{
		Addr: g.Addr, Connections: connections, Requests: load.Distinct(model, *size, *count, s.seed), Duration: *limit, Timeout: requestTime,
	})
	if err != nil {
		return err
	}
	return judgeSoak(ctx, r, g, *count, res, seen)
}

// underLoad runs the loop and samples kvca every second until it ends.
func underLoad(ctx context.Context, r *rig, g *gateway.Running, loop load.Closed) (*load.Result, samples, error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan *load.Result, 1)
	go func() { done <- loop.Run(ctx) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var seen samples
	for {
		select {
		case res := <-done:
			cancel()
			return res, seen, nil
		case <-tick.C:
			if err := seen.take(ctx, r, g); err != nil {
				cancel()
				<-done
				return nil, seen, err
			}
		}
	}
}

// take samples, and prints every thirtieth sample.
func (s *samples) take(ctx context.Context, r *rig, g *gateway.Running) error {
	usage, err := process.UsageOf(g.PID)
	if err != nil {
		return fmt.Errorf("kvca has ended: %w: %s", err, g.Log())
	}
	status, err := g.Status(ctx)
	if err != nil {
		return err
	}
	m := status.BlockMap
	s.rss, s.mapBytes, s.maxBytes = max(s.rss, usage.RSS), max(s.mapBytes, m.Bytes), m.MaxBytes
	if s.count%30 == 0 {
		r.Printf("%5d s: %d requests, RSS %s MB, block map %d blocks in %s of %s MB, %d evicted\n",
			s.count, status.Reservations.Granted, megabytes(usage.RSS), m.Blocks, megabytes(m.Bytes), megabytes(m.MaxBytes), m.Evicted)
	}
	s.count++
	return nil
}

func judgeSoak(ctx context.Context, r *rig, g *gateway.Running, count int64, res *load.Result, seen samples) error {
	r.Printf("\n%d prompts in %.0f s, %d failed, p50 %v, p99 %v\n\n", res.OK, res.Elapsed.Seconds(), res.Failed,
		res.Latency.Quantile(0.5).Round(10*time.Microsecond), res.Latency.Quantile(0.99).Round(10*time.Microsecond))
	if err := ctx.Err(); err != nil {
		return err
	}
	status, err := g.AwaitIdle(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	usage, err := process.UsageOf(g.PID)
	if err != nil {
		return err
	}
	m, most := status.BlockMap, status.BlockMap.MaxBytes+soakBase
	return errors.Join(
		r.judge(res.OK >= count, "%d of %d prompts were answered%s", res.OK, count, because(res.Err)),
		r.judge(usage.HighWater < most, "resident memory was at most %s MB (%s MB at samples), promised under %s MB", megabytes(usage.HighWater), megabytes(seen.rss), megabytes(most)),
		r.judge(max(seen.mapBytes, m.Bytes) <= m.MaxBytes, "the block map took at most %s of %s MB", megabytes(max(seen.mapBytes, m.Bytes)), megabytes(m.MaxBytes)),
		r.judge(status.Load() == "", "load left at the end: %s", orNone(status.Load())),
	)
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf(" (first failure: %.200v)", err)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
