package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kvca/bench/fake"
	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/report"
)

// cancelTime is how soon a backend must see that the client has gone.
const cancelTime = 50 * time.Millisecond

// runLeavers lets clients go away and looks for what they leave behind.
func runLeavers(ctx context.Context, args []string) (err error) {
	s := newSettings("leavers", "")
	l := load.Leave{Model: model, Connections: connections, Prefill: 150 * time.Millisecond, Timeout: requestTime}
	s.flags.IntVar(&l.Clients, "clients", 1000, "clients that leave")
	s.flags.IntVar(&l.BodyBytes, "bytes", 32<<10, "length of a prompt")
	settle := s.flags.Duration("settle", 20*time.Second, "time until goroutines must be back to their number at the start")
	if err := s.parse(args); err != nil {
		return err
	}
	cfg := fake.DefaultConfig()
	cfg.Delay, cfg.ChunkDelay = l.Prefill, 10*time.Millisecond
	l.StreamFor, l.Seed = cfg.ChunkDelay*time.Duration(cfg.Chunks), s.seed
	r, err := newRig(ctx, s, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	g, err := r.start(ctx, "kvca")
	if err != nil {
		return err
	}
	defer g.Close()
	start, err := goroutinesAtRest(ctx, g)
	if err != nil {
		return err
	}
	l.Addr = g.Addr
	late := watchLateness(ctx)
	leavers := l.Run(ctx)
	r.Printf("%d clients, %d at the same time; this machine woke a sleeper up to %v late\n\n", l.Clients, l.Connections,
		late.end().Round(100*time.Microsecond))
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(judgeLeavers(ctx, r, g, leavers), judgeGoroutines(ctx, r, g, start, *settle))
}

// goroutinesAtRest is the most goroutines in a few samples after the idle
// connection of the first request is gone: health checks come and go.
func goroutinesAtRest(ctx context.Context, g *gateway.Running) (int, error) {
	most := 0
	for i := range 24 {
		time.Sleep(250 * time.Millisecond)
		n, _, err := g.Goroutines(ctx)
		if err != nil {
			return 0, err
		}
		if i >= 16 {
			most = max(most, n)
		}
	}
	return most, nil
}

func judgeLeavers(ctx context.Context, r *rig, g *gateway.Running, leavers []load.Leaver) error {
	status, err := g.AwaitIdle(ctx, 2*time.Second)
	if err != nil {
		return err
	}
	stats, err := r.stats(ctx)
	if err != nil {
		return err
	}
	seen := matchLeavers(leavers, stats.Served)
	seen.print(r)
	var active int64
	for _, b := range stats.Backends {
		active += b.Active
	}
	return errors.Join(
		r.judge(status.Load() == "", "load left at the gateway: %s", orNone(status.Load())),
		r.judge(active == 0, "%d requests still run at the backends", active),
		r.judge(seen.missed == 0, "%d requests that a client had left long before their end were answered to it", seen.missed),
		r.judge(len(seen.delays) > 0 && seen.quantile(1) < cancelTime, "backends saw the client gone after %v at the median, %v at most, promised under %v",
			seen.quantile(0.5).Round(10*time.Microsecond), seen.quantile(1).Round(10*time.Microsecond), cancelTime),
		r.judge(seen.failed == 0, "%d clients were cut off or refused before they left%s", seen.failed, because(seen.err)),
	)
}

func judgeGoroutines(ctx context.Context, r *rig, g *gateway.Running, start int, settle time.Duration) error {
	deadline := time.Now().Add(settle)
	for {
		n, profile, err := g.Goroutines(ctx)
		if err != nil {
			return err
		}
		if n <= start || time.Now().After(deadline) {
			err = r.judge(n <= start, "%d goroutines after, %d before", n, start)
			if err != nil {
				r.Printf("\n```\n%.6000s\n```\n", profile)
			}
			return err
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// departures is what became of leavers, as their backends saw it.
type departures struct {
	byStage map[load.Stage]*struct{ left, arrived, cancelled, answered int }
	// delays are the times from a client's leaving to its backend's knowing.
	delays []time.Duration
	missed int
	failed int
	err    error
}

// matchLeavers puts both ends of each request together. A request that ended
// within cancelTime of the leaving may have been answered meanwhile.
func matchLeavers(leavers []load.Leaver, served []fake.Served) *departures {
	d := &departures{byStage: map[load.Stage]*struct{ left, arrived, cancelled, answered int }{}}
	at := make(map[int]fake.Served, len(served))
	for _, s := range served {
		at[s.Conversation] = s
	}
	for i, v := range leavers {
		count := d.byStage[v.Stage]
		if count == nil {
			count = &struct{ left, arrived, cancelled, answered int }{}
			d.byStage[v.Stage] = count
		}
		count.left++
		if v.Err != nil {
			d.failed++
			d.err = cmp.Or(d.err, v.Err)
			continue
		}
		s, arrived := at[i]
		if !arrived {
			continue
		}
		count.arrived++
		delay := s.Ended.Sub(v.Left)
		switch {
		case v.Finished || !s.Cancelled && delay < cancelTime:
			count.answered++
		case s.Cancelled:
			count.cancelled++
			d.delays = append(d.delays, max(delay, 0))
		default:
			d.missed++
		}
	}
	slices.Sort(d.delays)
	return d
}

func (d *departures) quantile(q float64) time.Duration {
	if len(d.delays) == 0 {
		return 0
	}
	return d.delays[int(q*float64(len(d.delays)-1))]
}

func (d *departures) print(r *rig) {
	t := &report.Table{Header: []string{"left in", "clients", "reached a backend", "cancelled there", "answered first"}}
	for _, stage := range []load.Stage{load.Upload, load.Prefill, load.Stream} {
		if c := d.byStage[stage]; c != nil {
			t.Add(stage, c.left, c.arrived, c.cancelled, c.answered)
		}
	}
	r.Printf("%s\n", fmt.Sprint(t))
}
