package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kvca/bench/fake"
	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/report"
)

// mix is one kind of conversation.
type mix struct {
	name        string
	systemBytes int
	shared      bool
	userBytes   int
	// spread is the most that the busiest backend may serve, over the mean.
	spread float64
}

var mixes = []mix{
	{"none shared", 4096, false, 1024, 1.1},
	{"4 kB shared, turns of 1 kB", 4096, true, 1024, 1.1},
	{"4 kB shared, turns of 200 bytes", 4096, true, 200, 1.25},
}

// keptAtLeast is the share of follow-ups that must stay on their backend.
const keptAtLeast = 0.98

// runAffinity plays conversations through one gateway and asks the backends who
// served which turn.
func runAffinity(ctx context.Context, args []string) (err error) {
	s := newSettings("affinity", "kvca")
	conversations := s.flags.Int("conversations", 200, "conversations of each kind")
	turns := s.flags.Int("turns", 5, "turns of each")
	delay := s.flags.Duration("delay", 30*time.Millisecond, "time until a backend answers")
	conns := s.flags.Int("connections", connections, "turns that are asked at the same time")
	sizes := s.flags.String("nodes", "", "instead of gateways, clusters of so many nodes, with commas between them")
	if err := s.parse(args); err != nil {
		return err
	}
	if *sizes != "" {
		ns, err := counts(*sizes)
		if err != nil {
			return err
		}
		return clusterAffinity(ctx, s, ns, load.Talk{Connections: *conns, Timeout: requestTime, Script: load.Script{
			Model: model, Conversations: *conversations, Turns: *turns, Seed: s.seed,
		}}, *delay)
	}
	names, err := gateway.Choose(s.gateways)
	if err != nil {
		return err
	}
	out, err := s.report()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	out.Printf("%d conversations of %d turns, backends answer in %v, %d turns at the same time\n\n", *conversations, *turns, *delay, *conns)
	t := &report.Table{Header: []string{"gateway", "conversations", "follow-ups kept", "lost at turn 2/3/...", "requests per backend", "max/mean", "p50, ms", "failed", "as promised"}}
	for _, name := range names {
		for _, m := range mixes {
			talk := load.Talk{Connections: *conns, Timeout: requestTime, Script: load.Script{
				Model: model, Conversations: *conversations, Turns: *turns, SystemBytes: m.systemBytes, Shared: m.shared,
				UserBytes: m.userBytes, Seed: s.seed,
			}}
			if e := affinityRow(ctx, s, t, name, m, talk, *delay); e != nil && (name == "kvca" || ctx.Err() != nil) {
				err = errors.Join(err, e)
			}
		}
	}
	out.Printf("%s", t)
	return err
}

// affinityRow starts a gateway and backends of its own for each kind, so that
// none finds what another has left.
func affinityRow(ctx context.Context, s *settings, t *report.Table, name string, m mix, talk load.Talk, delay time.Duration) error {
	cfg := fake.DefaultConfig()
	cfg.Delay = delay
	r, err := newQuietRig(ctx, s, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = r.close() }()
	g, err := r.start(ctx, name)
	if err != nil {
		t.Add(name, m.name, ends(err))
		return err
	}
	defer g.Close()
	talk.Addrs = []string{g.Addr}
	res := talk.Run(ctx)
	stats, err := r.stats(ctx)
	if err != nil {
		return err
	}
	a := load.AffinityOf(stats.Served, cfg.Backends)
	verdict := "yes"
	if a.Share() < keptAtLeast || a.Spread() > m.spread || res.Failed > 0 {
		verdict, err = "no", errBroken
	}
	t.Add(name, m.name, fmt.Sprintf("%.3f", a.Share()), slashed(a.Lost), slashed(a.PerBackend),
		fmt.Sprintf("%.2f", a.Spread()), fmt.Sprintf("%.1f", res.Latency.Quantile(0.5).Seconds()*1e3), res.Failed, verdict)
	if res.Err != nil {
		return errors.Join(err, res.Err)
	}
	return err
}

func slashed(n []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(n), " ", "/"), "[]") }

// ends are the first and the last line of an error, which may hold a whole log.
func ends(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	if len(lines) == 1 {
		return lines[0]
	}
	return lines[0] + ": " + lines[len(lines)-1]
}
