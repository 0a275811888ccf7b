package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"kvca/bench/gateway"
	"kvca/bench/report"
	"kvca/bench/world"
)

// worldDifference is how far the simulator's hit rate may be from the world's.
const worldDifference = 0.02

// runWorld plays one workload in the world and in the simulator, and compares
// their hit rates.
func runWorld(ctx context.Context, args []string) (err error) {
	s := newSettings("world", "")
	policies := s.flags.String("policies", "cost,least-request,round-robin", "policies, with commas between them")
	sizes := s.flags.String("nodes", "1,3", "numbers of nodes, with commas between them")
	speedup := s.flags.Float64("speedup", world.Default(1).Speedup, "seconds of the engines in one of the clock; less for a slow machine")
	if err := s.parse(args); err != nil {
		return err
	}
	ns, err := counts(*sizes)
	if err != nil {
		return err
	}
	if !(*speedup >= 1 && *speedup <= 100) {
		return fmt.Errorf("-speedup: %v: want 1 to 100", *speedup)
	}
	cfg := world.Default(s.seed)
	cfg.Kvca, cfg.Flags, cfg.Speedup = absolute(s.kvca), strings.Fields(s.kvcaFlags), *speedup
	if cfg.Dir, err = os.MkdirTemp("", "kvca-bench-"); err != nil {
		return fmt.Errorf("make a folder for logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cfg.Dir)) }()
	out, err := s.report()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var cases []world.Case
	for policy := range strings.SplitSeq(*policies, ",") {
		for _, n := range ns {
			cases = append(cases, world.Case{Policy: policy, Nodes: n})
		}
	}
	return compareWorlds(ctx, out, cfg, cases)
}

func compareWorlds(ctx context.Context, out *report.Writer, cfg world.Config, cases []world.Case) error {
	w := &cfg.Workload
	out.Printf("kvca %s\n\n%d tenants with system prompts of %d tokens, %v conversations a second for %v; %d engines %s with caches of %d tokens; "+
		"%v times as fast as the clock, in which times are given; simulated with %d seeds\n\n",
		gateway.Version(ctx, "kvca", &gateway.Env{Kvca: cfg.Kvca}), w.Tenants, w.SystemTokens, w.Rate, w.Duration,
		cfg.Engines, cfg.Profile.Name, cfg.Profile.KVTokens, cfg.Speedup, cfg.Seeds)
	t := &report.Table{Header: []string{
		"policy", "nodes", "requests", "hit rate, real", "simulated", "from seed to seed", "difference", "TTFT mean, ms, real", "simulated",
		"took, s, real", "simulated", "sent late, ms, p90", "CBR bytes/token", "agree",
	}}
	var err error
	for _, c := range cases {
		o, e := cfg.Run(ctx, c)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		err = errors.Join(err, worldRow(t, o))
	}
	out.Printf("%s", t)
	return err
}

func worldRow(t *report.Table, o *world.Outcome) error {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/1e6) }
	if o.TooSlow() {
		t.Add(o.Policy, o.Nodes, o.Requests, "", "", "", "", "", "", "", "", ms(o.Late), "", "machine too slow: try a smaller -speedup")
		return errBroken
	}
	verdict, err := "yes", error(nil)
	if math.Abs(o.Difference()) > worldDifference {
		verdict, err = "NO", errBroken
	}
	t.Add(o.Policy, o.Nodes, o.Requests, rate(o.Real.HitRate), rate(o.Simulated.HitRate), "±"+rate(o.Spread), fmt.Sprintf("%+.4f", o.Difference()),
		ms(o.Real.TTFT), ms(o.Simulated.TTFT), fmt.Sprintf("%.0f", o.Real.Took.Seconds()), fmt.Sprintf("%.0f", o.Simulated.Took.Seconds()),
		ms(o.Late), fmt.Sprintf("%.3f", o.BytesPerToken), verdict)
	return err
}

func rate(r float64) string { return fmt.Sprintf("%.4f", r) }
