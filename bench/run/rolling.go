package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"kvca/bench/drills"
	"kvca/bench/fake"
	"kvca/bench/nodes"
	"kvca/bench/process"
)

// runRolling restarts three nodes and eight backends, one by one, under load.
func runRolling(ctx context.Context, args []string) (err error) {
	s := newSettings("rolling", "")
	rate := s.flags.Float64("rate", 200, "requests a second")
	delay := s.flags.Duration("drain-delay", time.Second, "kvca's own; below 100 ms load balancers notice too late, and requests fail")
	if err := s.parse(args); err != nil {
		return err
	}
	r, err := newClusterRig(ctx, s, clusterFakes(0)) // for the folder and the report
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	engines, err := r.startEngines(ctx, clusterBackends, "127.0.0.1", func(int) (delay, chunkDelay time.Duration) {
		return 50 * time.Millisecond, 20 * time.Millisecond
	})
	defer func() {
		for _, e := range engines {
			e.Close()
		}
	}()
	if err != nil {
		return err
	}
	r.env.KvcaFlags = append(r.env.KvcaFlags, "--drain-delay", delay.String())
	return r.withCluster(ctx, clusterNodes, func(c *nodes.Cluster) error {
		rolled, err := drills.New(c, r.stats, model).Rolling(ctx, engines, *rate)
		if rolled != nil && rolled.Result != nil {
			r.Printf("%d nodes and %d backends restarted one by one, %.0f requests a second, half of them streams of 400 ms\n\n", clusterNodes, len(engines), *rate)
			r.Printf("%d requests in %.0f s, %d failed, %d sent again on a new connection, p50 %v, p99 %v, slowest %v\n",
				rolled.OK+rolled.Failed, rolled.Elapsed.Seconds(), rolled.Failed, rolled.Again,
				rolled.Latency.Quantile(0.5).Round(time.Millisecond), rolled.Latency.Quantile(0.99).Round(time.Millisecond), rolled.Latency.Max().Round(time.Millisecond))
			r.Printf("a node ended after %v at most and was ready %v after its start; a backend was free after %v and healthy for all %v after its start\n\n",
				rolled.Drain.Round(time.Millisecond), rolled.Ready.Round(time.Millisecond), rolled.BackendDrain.Round(time.Millisecond), rolled.Back.Round(time.Millisecond))
		}
		if err != nil {
			return err
		}
		return errors.Join(
			r.judge(rolled.Failed == 0, "%d of %d requests failed%s", rolled.Failed, rolled.OK+rolled.Failed, because(rolled.Err)),
			r.judge(true, "no load was left at the end"),
		)
	})
}

// startEngines starts backends in processes of their own, in the place of the rig's.
// pace says how long each takes to begin an answer, and between two events of a stream.
func (r *rig) startEngines(ctx context.Context, n int, host string, pace func(i int) (delay, chunkDelay time.Duration)) ([]*drills.Engine, error) {
	ports, err := process.FreePorts(n)
	if err != nil {
		return nil, err
	}
	r.env.Backends = nil
	var engines []*drills.Engine
	for i, port := range ports {
		e := &drills.Engine{ID: nodes.BackendID(i), URL: "http://" + net.JoinHostPort(host, strconv.Itoa(port))}
		delay, chunkDelay := pace(i)
		e.Start = func(ctx context.Context) (*process.Child, error) {
			return r.startEngine(ctx, e, "-host", host, "-port", strconv.Itoa(port), "-delay", delay.String(), "-chunk-delay", chunkDelay.String())
		}
		engines = append(engines, e)
		if err := e.Run(ctx); err != nil {
			return engines, err
		}
		r.env.Backends = append(r.env.Backends, e.URL)
	}
	return engines, nil
}

func (r *rig) startEngine(ctx context.Context, e *drills.Engine, flags ...string) (*process.Child, error) {
	child, err := process.Start(ctx, process.Spec{
		Name: "engine-" + e.ID, Dir: r.env.Dir, Args: append([]string{r.env.Self, "fake", "-backends", "1", "-model", model}, flags...),
	})
	if err != nil {
		return nil, err
	}
	err = child.Await(ctx, 10*time.Second, func() error { _, err := fake.Fetch(ctx, e.URL); return err })
	if err != nil {
		child.Close()
		return nil, err
	}
	return child, nil
}
