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
	"kvca/bench/report"
)

// runMemory sends distinct prompts and reads what memory the gateway has then.
func runMemory(ctx context.Context, args []string) (err error) {
	s := newSettings("memory", "kvca")
	count := s.flags.Int64("count", 20_000, "distinct prompts")
	size := s.flags.Int("bytes", 32<<10, "length of each")
	most := s.flags.Int64("most", 150, "what kvca's resident memory must stay under, in MB")
	limit := s.flags.Duration("limit", 5*time.Minute, "bound on the time for each gateway")
	if err := s.parse(args); err != nil {
		return err
	}
	names, err := gateway.Choose(s.gateways)
	if err != nil {
		return err
	}
	r, err := newRig(ctx, s, fake.DefaultConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	t := &report.Table{Header: []string{"gateway", "RSS idle, MB", "RSS after, MB", "most, MB", "prompts", "failed", "s"}}
	var verdicts []error
	for _, name := range names {
		after, err := flood(ctx, r, t, name, load.Closed{
			Connections: connections, Requests: load.Distinct(model, *size, *count, s.seed), Duration: *limit, Timeout: requestTime,
		})
		if err == nil && name == "kvca" && after.HighWater >= *most*1e6 {
			err = errBroken
		}
		if err != nil {
			r.Printf("* %s: %s\n", name, ends(err))
		}
		if name == "kvca" {
			verdicts = append(verdicts, err)
		}
	}
	r.Printf("%d distinct prompts of %d bytes; kvca must stay under %d MB\n\n%s", *count, *size, *most, t)
	return errors.Join(verdicts...)
}

func flood(ctx context.Context, r *rig, t *report.Table, name string, loop load.Closed) (process.Usage, error) {
	g, err := r.start(ctx, name)
	if err != nil {
		return process.Usage{}, err
	}
	defer g.Close()
	before, err := process.UsageOf(g.PID)
	if err != nil {
		return before, err
	}
	loop.Addr = g.Addr
	res := loop.Run(ctx)
	after, err := process.UsageOf(g.PID)
	if err != nil {
		return after, err
	}
	t.Add(name, megabytes(before.RSS), megabytes(after.RSS), megabytes(after.HighWater), res.OK, res.Failed, fmt.Sprintf("%.0f", res.Elapsed.Seconds()))
	if name == "kvca" {
		return after, errors.Join(idleFault(ctx, g), res.Err)
	}
	return after, res.Err
}

// idleFault is an error where load is left though nobody asks for anything.
func idleFault(ctx context.Context, g *gateway.Running) error {
	status, err := g.AwaitIdle(ctx, 5*time.Second)
	if err != nil {
		return err
	}
	if left := status.Load(); left != "" {
		return fmt.Errorf("load is left: %s: %w", left, errBroken)
	}
	return nil
}
