package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvca/bench/drills"
	"kvca/bench/nodes"
	"kvca/bench/report"
)

// What is promised of a node that is lost.
const (
	// loadGone is how soon its load is gone.
	loadGone = 2 * time.Second
	// ownedAgain is how soon its backends have other owners.
	ownedAgain = 6 * time.Second
	// delayed is what a request elsewhere may be delayed by.
	delayed = 60 * time.Millisecond
	// healed is how soon a partition is forgotten after it.
	healed = 20 * time.Second
)

// runDrills kills a node and stops one, under load.
func runDrills(ctx context.Context, args []string) error {
	s := newSettings("drills", "")
	rounds := s.flags.Int("rounds", 3, "times that each is done")
	stopped := s.flags.Duration("stopped", 5*time.Second, "how long a node is stopped")
	if err := s.parse(args); err != nil {
		return err
	}
	return onCluster(ctx, s, drills.Fakes(), clusterNodes, func(r *rig, c *nodes.Cluster) error {
		rig := drills.New(c, r.stats, model)
		r.Printf("%d nodes, %d backends that answer in %v, %.0f short requests a second at each node, 16 streams held at each\n\n",
			clusterNodes, clusterBackends, drills.Fakes().Delay, rig.Rate)
		err := killRounds(ctx, r, rig, *rounds)
		return errors.Join(err, stopRounds(ctx, r, rig, *rounds, *stopped))
	})
}

func killRounds(ctx context.Context, r *rig, rig *drills.Rig, rounds int) error {
	t := &report.Table{Header: []string{
		"kill -9", "requests at the others", "failed", "slowest, ms", "load gone, s", "owned again, s", "same name ready, s", "all see it, loads exact, s",
	}}
	var failed int64
	var gone, owned time.Duration
	for round := range rounds {
		k, err := rig.Kill(ctx)
		if err != nil {
			return fmt.Errorf("kill, round %d: %w", round+1, err)
		}
		t.Add(round+1, k.Others.Requests, k.Others.Failed, millis(k.Others.Slowest), secs(k.LoadGone), secs(k.Owned), secs(k.Ready), secs(k.Whole))
		failed, gone, owned = failed+k.Others.Failed, max(gone, k.LoadGone), max(owned, k.Owned)
	}
	r.Printf("%s\n", t)
	return errors.Join(
		r.judge(failed == 0, "%d requests at the others failed", failed),
		r.judge(gone <= loadGone, "the killed node's load was gone after %s s at most, promised %v", secs(gone), loadGone),
		r.judge(owned <= ownedAgain, "its backends had other owners after %s s at most, promised %v", secs(owned), ownedAgain),
		r.judge(true, "no load left at rest, all maps the same"),
	)
}

func stopRounds(ctx context.Context, r *rig, rig *drills.Rig, rounds int, pause time.Duration) error {
	t := &report.Table{Header: []string{
		"SIGSTOP", "requests at the others", "failed", "slowest before, ms", "while stopped, ms", "after, ms", "machine late by, ms", "own requests, failed", "whole again, s", "loads exact, s",
	}}
	var failed int64
	var worst, lateWorst time.Duration
	for round := range rounds {
		late := watchLateness(ctx)
		s, err := rig.Stop(ctx, pause)
		lateBy := late.end()
		if err != nil {
			return fmt.Errorf("stop, round %d: %w", round+1, err)
		}
		t.Add(round+1, s.Before.Requests+s.During.Requests+s.After.Requests, s.Before.Failed+s.During.Failed+s.After.Failed,
			millis(s.Before.Slowest), millis(s.During.Slowest), millis(s.After.Slowest), millis(lateBy),
			fmt.Sprintf("%d, %d", s.Own.Requests, s.Own.Failed), secs(s.Whole), secs(s.Exact))
		failed += s.Before.Failed + s.During.Failed + s.After.Failed
		worst, lateWorst = max(worst, s.During.Slowest-drills.Fakes().Delay), max(lateWorst, lateBy)
	}
	r.Printf("\n%s\n", t)
	return errors.Join(
		r.judge(failed == 0, "%d requests at the others failed", failed),
		r.judge(worst <= delayed, "no request at the others was delayed by more than %s ms, promised %v (the machine itself was late by up to %s ms)",
			millis(worst), delayed, millis(lateWorst)),
		r.judge(true, "healed, no load left at rest, all maps the same"),
	)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1e3) }

func secs(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }
