package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kvca/bench/drills"
	"kvca/bench/netns"
	"kvca/bench/nodes"
	"kvca/bench/soak"
)

const (
	// endureMap is the bound of the nodes' block maps. A map that is nearly full is not
	// compared any more, since what it took in would push out what it has, so this is
	// more than they need; what happens at the bound is for the command soak.
	endureMap = 96 << 20
	// shortTTL is for runs that are longer than shortRun, which would fill the map.
	shortTTL = 2 * time.Minute
	shortRun = 5 * time.Minute
	// starvedAt is how many descriptors the last node may have.
	starvedAt = 400
)

// endurance is what runEndure has at hand.
type endurance struct {
	*rig
	world   *soak.World
	clients *soak.Clients
	lab     *netns.Lab // nil where the machine can't have one
	peak    []int64    // of resident memory
	start   []soak.Level
	lasts   time.Duration
}

// runEndure keeps a cluster busy while one thing after the other goes wrong.
func runEndure(ctx context.Context, args []string) (err error) {
	s := newSettings("endure", "")
	lasts := s.flags.Duration("time", time.Minute, "how long faults are done")
	pause := s.flags.Duration("pause", time.Second, "mean time between a fault that has healed and the next")
	rate := s.flags.Float64("rate", 120, "requests a second")
	only := s.flags.String("only", "", "do only faults whose names contain this")
	if err := s.parse(args); err != nil {
		return err
	}
	r, err := newClusterRig(ctx, s, clusterFakes(0)) // for the folder and the report
	if err != nil {
		return err
	}
	e := &endurance{rig: r, lasts: *lasts}
	defer func() { err = errors.Join(err, e.close()) }()
	if err := e.prepare(ctx, s.seed, *rate); err != nil {
		return err
	}
	list := e.faults(*only)
	r.Printf("%d nodes, %d backends, %.0f requests a second, seed %d, faults for %v with pauses of %v\n\n", clusterNodes, clusterBackends, *rate, s.seed, *lasts, *pause)
	if e.start, err = e.warm(ctx); err != nil {
		return err
	}
	began := time.Now()
	e.world.Told = func(ev soak.Event) {
		r.Printf("%6.1f s: %s: %s %s, healed %.1f s after its end\n", ev.Began.Sub(began).Seconds(), ev.Fault, ev.Target, ev.Detail, ev.Healed.Sub(ev.Ended).Seconds())
	}
	return errors.Join(e.run(ctx, s.seed, *lasts, *pause, list), e.judgeAll(ctx))
}

// close ends everything, the namespaces last.
func (e *endurance) close() error {
	var faults []error
	if w := e.world; w != nil {
		if w.Cluster != nil {
			w.Cluster.Close()
		}
		for _, b := range w.Engines {
			b.Close()
		}
		if w.Log != nil {
			faults = append(faults, w.Log.Close())
		}
	}
	faults = append(faults, e.rig.close())
	if e.lab != nil {
		faults = append(faults, e.lab.Close())
	}
	return errors.Join(faults...)
}

// prepare starts backends and nodes.
func (e *endurance) prepare(ctx context.Context, seed uint64, rate float64) (err error) {
	e.world = &soak.World{Dir: e.env.Dir, Descriptors: starvedAt, Noise: []string{e.env.Self, "noise"}}
	places, host, err := e.places(ctx)
	if err != nil {
		return err
	}
	w := e.world
	if w.Engines, err = e.startEngines(ctx, clusterBackends, host, unlike); err != nil {
		return err
	}
	if w.Log, err = soak.NewPipe(filepath.Join(e.env.Dir, "access.pipe")); err != nil {
		return err
	}
	last := len(places) - 1
	// kvca opens no pipe of its own accord, but writes to what is its standard output.
	places[0].Enter = append(places[0].Enter, "sh", "-c", `exec "$0" "$@" >`+w.Log.Path)
	places[0].Flags = []string{"--access-log", "-"}
	n := strconv.Itoa(starvedAt)
	places[last].Enter = append(places[last].Enter, "prlimit", "--nofile="+n+":"+n)
	file := filepath.Join(e.env.Dir, "kvca.yaml")
	w.Configure = func(n int) error { return os.WriteFile(file, configuration(w.Engines, n), 0o600) }
	if err := w.Configure(0); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	cfg := e.clusterConfig(places)
	cfg.Backends = nil // the file has them
	cfg.Flags = append(cfg.Flags, "--config", file, "--max-index-bytes", strconv.Itoa(endureMap))
	if e.lasts > shortRun {
		cfg.Flags = append(cfg.Flags, "--ttl", shortTTL.String())
	}
	if w.Cluster, err = nodes.Start(ctx, cfg); err != nil {
		return err
	}
	w.Begin(ctx)
	w.Starved = w.Cluster.Nodes[last]
	names := map[string]string{}
	for _, n := range w.Cluster.Nodes {
		names[n.Client] = n.Place.Name
	}
	e.clients = &soak.Clients{Model: model, Names: names, Rate: rate, Workers: 64, Seed: seed, History: &w.History}
	return nil
}

// places are in network namespaces, if they are to be had.
func (e *endurance) places(ctx context.Context) (places []nodes.Place, host string, err error) {
	names := make([]string, clusterNodes)
	for i := range names {
		names[i] = fmt.Sprintf("node-%d", i)
	}
	lab, err := netns.New(ctx, names, netns.Faults{Delay: 200 * time.Microsecond})
	if errors.Is(err, netns.ErrMissing) {
		e.Printf("nodes are on 127.0.0.1: %v\n", err)
		places, err = nodes.Local(clusterNodes)
		return places, "127.0.0.1", err
	}
	if err != nil {
		return nil, "", err
	}
	e.Printf("nodes are in network namespaces of their own\n")
	e.lab, e.world.Net = lab, lab
	return spaces(lab, names), lab.Machine(), nil
}

// unlike makes every fourth backend slow, and one that streams for seconds.
func unlike(i int) (delay, chunkDelay time.Duration) {
	switch {
	case i%4 == 3:
		return 300 * time.Millisecond, 40 * time.Millisecond
	case i == 1:
		return 30 * time.Millisecond, 150 * time.Millisecond
	}
	return 30 * time.Millisecond, 15 * time.Millisecond
}

// configuration is the n-th version of the file of all nodes.
func configuration(engines []*drills.Engine, n int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "debug_headers: true\npolicy: %s\nwrite_idle: %ds\nbackend:\n", []string{"cost", "two-phase"}[n%2], 60+n)
	for i, e := range engines {
		fmt.Fprintf(&b, "  - {id: %s, url: %q, weight: %d}\n", e.ID, e.URL, 1+(n+i)%2)
	}
	return []byte(b.String())
}

// faults are those that can be done here; for the others it says why not.
func (e *endurance) faults(only string) []soak.Fault {
	var list []soak.Fault
	for _, f := range soak.Faults() {
		if !strings.Contains(f.Name, only) {
			continue
		}
		if f.Missing != nil && f.Missing(e.world) != "" {
			e.Printf("left out: %s: %s\n", f.Name, f.Missing(e.world))
			continue
		}
		list = append(list, f)
	}
	return list
}

// warm lets clients come and go once, and returns what nodes use after that.
func (e *endurance) warm(ctx context.Context) ([]soak.Level, error) {
	balancer := nodes.Watch(ctx, e.world.Cluster.Nodes, 100*time.Millisecond)
	defer balancer.Close()
	e.clients.Ready, e.clients.Why = balancer.Ready, balancer.Why
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	e.clients.Run(short)
	if err := sleep(ctx, 6*time.Second); err != nil { // idle connections to backends are kept for 4 s
		return nil, err
	}
	return soak.Levels(ctx, e.world.Cluster.Nodes)
}

// run does the faults under load and watches memory.
func (e *endurance) run(ctx context.Context, seed uint64, lasts, pause time.Duration, list []soak.Fault) error {
	balancer := nodes.Watch(ctx, e.world.Cluster.Nodes, 100*time.Millisecond)
	defer balancer.Close()
	e.clients.Ready, e.clients.Why = balancer.Ready, balancer.Why
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	clientsDone, watchDone := make(chan struct{}), make(chan struct{})
	loadCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(clientsDone); e.clients.Run(loadCtx) }()
	go func() { defer close(watchDone); e.peak = e.world.Watch(loadCtx) }()
	err := e.world.Run(ctx, seed, pause, list)
	if err == nil {
		err = sleep(loadCtx, 2*time.Second)
	}
	stop()
	<-clientsDone
	<-watchDone
	return err
}

// judgeAll looks at what is left and at what failed.
func (e *endurance) judgeAll(ctx context.Context) error {
	v := e.world.History.Judge()
	e.Printf("\n%-12s %8s %8s\n", "", "requests", "failed")
	for _, kind := range soak.Kinds() {
		c := e.clients.Counts()[kind]
		e.Printf("%-12s %8d %8d\n", kind, c.Sent, c.Failed)
	}
	e.Printf("%d sent again on a new connection, %d lines in the access log of node-0\n", e.clients.Again(), e.world.Log.Lines())
	for why, n := range v.Excused {
		e.Printf("%d failed since %s\n", n, why)
	}
	for i := range min(len(v.Broken), 20) {
		e.Printf("not excused: %v\n", &v.Broken[i])
	}
	e.Printf("\n")
	faults := []error{
		e.judge(len(v.Broken) == 0 && v.Untold == 0, "%d requests failed that are not excused, %d not looked at", len(v.Broken), v.Untold),
		e.judge(len(e.world.History.Events()) > 0, "%d faults were done", len(e.world.History.Events())),
	}
	questions := e.clients.Asked(time.Minute, 200)
	rest := e.world.Rest(ctx)
	faults = append(faults, e.judge(rest == nil, "no load was left on any node or backend%s", because(rest)))
	held, err := e.world.Agree(ctx, questions)
	faults = append(faults, e.judge(err == nil, "all nodes believed the same of %d prompts of the last minute, that %d are held%s", len(questions), held, because(err)))
	if e.lasts <= shortRun {
		err := e.world.Same(ctx)
		faults = append(faults, e.judge(err == nil, "all maps were the same%s", because(err)))
	}
	after, err := soak.Settle(ctx, e.world.Cluster.Nodes, e.start)
	faults = append(faults, e.judge(err == nil, "goroutines and descriptors were what they had been%s", because(err)))
	most := int64(endureMap + soakBase)
	for i, n := range e.world.Cluster.Nodes {
		if after != nil {
			e.Printf("  %s: goroutines %d, then %d; descriptors %d, then %d\n", n.Place.Name,
				e.start[i].Goroutines, after[i].Goroutines, e.start[i].Descriptors, after[i].Descriptors)
		}
		faults = append(faults, e.judge(e.peak[i] < most, "%s had at most %s MB resident, promised under %s", n.Place.Name, megabytes(e.peak[i]), megabytes(most)))
	}
	return errors.Join(append(faults, e.judgeHealth(ctx))...)
}

// judgeHealth looks for faults of the program's own, and for changes that were refused.
func (e *endurance) judgeHealth(ctx context.Context) error {
	crashes, err := soak.Crashes(e.env.Dir)
	if err != nil {
		return err
	}
	all, err := metricsOf(ctx, e.world.Cluster.Nodes)
	if err != nil {
		return err
	}
	var panics, refused, dropped float64
	for _, m := range all {
		panics += m.Sum("kvca_panics_total")
		refused += m.Sum("kvca_config_reload_total", "result", "error")
		dropped += m.Sum("kvca_access_log_dropped_total")
	}
	e.Printf("  %.0f lines of the access log dropped\n", dropped)
	return errors.Join(
		e.judge(len(crashes) == 0 && panics == 0, "%d panics, %d lines of logs tell of faults %.500q", int(panics), len(crashes), crashes),
		e.judge(refused == 0, "%.0f changes of the configuration were refused", refused),
	)
}

// runNoise sends garbage to the addresses for two seconds.
func runNoise(ctx context.Context, addrs []string) error {
	for _, addr := range addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("noise: %w", err)
		}
	}
	conns, packets := soak.Noise(ctx, addrs, 2*time.Second)
	_, err := fmt.Printf("%d connections and %d packets", conns, packets)
	return err
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
