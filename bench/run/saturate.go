package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"kvca/bench/fake"
	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/process"
)

// What is promised of a node at half of what saturates it.
const (
	addedMedian = 150 * time.Microsecond
	addedTail   = time.Millisecond
	// quietLoad is the load average below which a machine is quiet enough to judge times.
	quietLoad = 1.5
)

// runSaturate finds how much one node can take, and what it adds at half of that.
func runSaturate(ctx context.Context, args []string) (err error) {
	s := newSettings("saturate", "")
	lasts := s.flags.Duration("time", 10*time.Second, "how long each is measured")
	size := s.flags.Int("bytes", 2<<10, "length of the prompt, which is the same each time")
	if err := s.parse(args); err != nil {
		return err
	}
	busy, err := loadAverage()
	if err != nil {
		return err
	}
	r, err := newClusterRig(ctx, s, fake.DefaultConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	g, err := r.start(ctx, "kvca")
	if err != nil {
		return err
	}
	defer g.Close()
	name, h, err := r.newHammer(load.Chat(model, *size, false, s.seed))
	if err != nil {
		return err
	}
	r.Printf("one node, 4 backends that answer at once, %d connections, %d bytes, by %s; load average %.2f at the start\n\n", 2*connections, *size, name, busy)
	full, broken := r.saturation(ctx, g, h, *lasts)
	if full == nil {
		return broken
	}
	return errors.Join(broken, r.half(ctx, g, float64(full.OK)/full.Elapsed.Seconds()/2, *lasts, busy < quietLoad))
}

// saturation sends as much as the node can take.
func (r *rig) saturation(ctx context.Context, g *gateway.Running, h hammer, lasts time.Duration) (*load.Result, error) {
	res, err := h(ctx, g.Addr, 0, lasts)
	if err != nil {
		return nil, err
	}
	status, err := g.AwaitIdle(ctx, 5*time.Second)
	if err != nil {
		return nil, err
	}
	usage, err := process.UsageOf(g.PID)
	if err != nil {
		return nil, err
	}
	most := status.BlockMap.MaxBytes + soakBase
	r.Printf("saturated: %.0f requests a second, p50 %s ms, p99 %s ms\n", float64(res.OK)/res.Elapsed.Seconds(), millis(res.Latency.Quantile(0.5)), millis(res.Latency.Quantile(0.99)))
	return res, errors.Join(
		r.judge(res.Failed == 0 && res.OK > 0, "%d of %d requests failed%s", res.Failed, res.OK+res.Failed, because(res.Err)),
		r.judge(usage.HighWater < most, "resident memory was at most %s MB, promised under %s", megabytes(usage.HighWater), megabytes(most)),
		r.judge(status.Load() == "", "load left at the end: %s", orNone(status.Load())),
	)
}

// rounds is how often direct, floor and node are measured in turn.
const rounds = 4

// half compares the node with its backends, and with a bare Go proxy in front of them,
// at a rate that all can take.
func (r *rig) half(ctx context.Context, g *gateway.Running, rate float64, lasts time.Duration, quiet bool) error {
	floor, err := r.start(ctx, "plain")
	if err != nil {
		return err
	}
	defer floor.Close()
	before, err := g.Metrics(ctx)
	if err != nil {
		return err
	}
	var ways [3]struct {
		load.Histogram
		failed int64
	}
	for range rounds {
		for i, addr := range []string{strings.TrimPrefix(r.env.Backends[0], "http://"), floor.Addr, g.Addr} {
			res := steadily(ctx, addr, rate, lasts/rounds)
			ways[i].Merge(&res.Latency)
			ways[i].failed += res.Failed
		}
	}
	after, err := g.Metrics(ctx)
	if err != nil {
		return err
	}
	inside := after.Histogram("kvca_gateway_seconds").Minus(before.Histogram("kvca_gateway_seconds"))
	r.Printf("\nhalf of it, %.0f requests a second, in %d turns of %v:\n", rate, rounds, lasts/rounds)
	for i, name := range []string{"direct", "through a bare proxy", "through the node"} {
		w := &ways[i]
		r.Printf("  %-21s p50 %s p99 %s ms, %d answered, %d failed\n", name, inMillis(w.Quantile(0.5)), inMillis(w.Quantile(0.99)), w.Count(), w.failed)
	}
	direct, bare, through := &ways[0], &ways[1], &ways[2]
	faults := []error{r.judge(direct.failed+through.failed == 0 && inside.Count() > 0, "%d requests failed", direct.failed+through.failed)}
	for _, c := range []struct {
		q    float64
		most time.Duration
	}{{0.5, addedMedian}, {0.99, addedTail}} {
		lower, upper := inside.Quantile(c.q)
		added, least := through.Quantile(c.q)-direct.Quantile(c.q), bare.Quantile(c.q)-direct.Quantile(c.q)
		within := fmt.Sprintf("p%.0f added by kvca_gateway_seconds: between %v and %v, promised under %v", c.q*100, lower, upper, c.most)
		outside := fmt.Sprintf("p%.0f added as seen from outside: %v, promised under %v; a bare proxy adds %v", c.q*100, added.Round(time.Microsecond), c.most, least.Round(time.Microsecond))
		if !quiet {
			r.Printf("* not judged, the machine is busy: %s\n* not judged, the machine is busy: %s\n", within, outside)
			continue
		}
		faults = append(faults, r.judge(upper <= c.most, "%s", within), r.judgeHere(added < c.most, least < c.most, "%s", outside))
	}
	return errors.Join(faults...)
}

// steadily sends requests at even distances. h2load, asked for a rate, sends one on every
// connection at the same moment: what is seen then is how long 64 requests take.
func steadily(ctx context.Context, addr string, rate float64, lasts time.Duration) *load.Result {
	return load.Closed{
		Addr: addr, Connections: connections, Rate: rate, Duration: lasts, Timeout: requestTime,
		Requests: load.Same(load.Chat(model, 2<<10, false, 1)),
	}.Run(ctx)
}

func inMillis(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1e3, 'f', 3, 64) }

// loadAverage is that of the last minute.
func loadAverage() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("read load average: %w", err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}
