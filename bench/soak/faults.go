package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"kvca/bench/fake"
	"kvca/bench/nodes"
	"kvca/bench/process"
)

// Fault is one thing that goes wrong.
type Fault struct {
	Name string
	// Do does it, waits and undoes it. It tells the event who it was done to.
	Do func(ctx context.Context, w *World, r *rand.Rand, e *Event) error
	// Missing says why it can't be done in a world, "" where it can.
	Missing func(w *World) string
}

// Faults are all there are.
func Faults() []Fault {
	return []Fault{
		{Name: NodeKilled, Do: killNode},
		{Name: "a node is stopped and goes on", Do: stopNode},
		{Name: "the network parts", Do: part, Missing: func(w *World) string {
			if w.Net == nil {
				return "no network namespaces on this machine; stopped nodes stand for it"
			}
			return ""
		}},
		{Name: BackendKilled, Do: killBackend},
		{Name: "a backend is stopped and goes on", Do: stopBackend},
		{Name: BackendGarbage, Do: lie},
		{Name: "the access log can't be written", Do: blockLog},
		{Name: "a node's clock jumps", Do: jump, Missing: func(*World) string { return clockMissing }},
		{Name: NoDescriptors, Do: starve},
		{Name: "garbage on the ports between nodes", Do: makeNoise},
		{Name: "the configuration is changed and read again", Do: reload},
	}
}

func (w *World) anyNode(r *rand.Rand, e *Event) *nodes.Node {
	n := w.Cluster.Nodes[r.IntN(len(w.Cluster.Nodes))]
	e.Target = n.Place.Name
	return n
}

func killNode(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	n := w.anyNode(r, e)
	n.Kill()
	if err := sleep(ctx, between(r, 200*time.Millisecond, 3*time.Second)); err != nil {
		return err
	}
	took, err := n.Restart(w.life, HealTime)
	e.Detail = fmt.Sprintf("ready %v after its start", took.Round(time.Millisecond))
	return err
}

func stopNode(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	n, lasts := w.anyNode(r, e), between(r, time.Second, 5*time.Second)
	e.Detail = "for " + lasts.Round(time.Millisecond).String()
	if err := n.Stop(); err != nil {
		return err
	}
	return errors.Join(sleep(ctx, lasts), n.Continue())
}

func part(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	alone, lasts := w.anyNode(r, e), between(r, 2*time.Second, 6*time.Second)
	e.Detail = "alone for " + lasts.Round(time.Millisecond).String()
	var others []string
	for _, n := range w.Cluster.Nodes {
		if n != alone {
			others = append(others, n.Place.Name)
		}
	}
	w.Net.Partition([]string{alone.Place.Name}, others)
	defer w.Net.Heal()
	return sleep(ctx, lasts)
}

func killBackend(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	b := w.Engines[r.IntN(len(w.Engines))]
	e.Target = b.ID
	b.Kill()
	e.Ended = time.Now()
	if err := sleep(ctx, between(r, 100*time.Millisecond, 3*time.Second)); err != nil {
		return err
	}
	return b.Run(w.life)
}

func stopBackend(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	b, lasts := w.Engines[r.IntN(len(w.Engines))], between(r, time.Second, 5*time.Second)
	e.Target, e.Detail = b.ID, "for "+lasts.Round(time.Millisecond).String()
	if err := b.Stop(); err != nil {
		return err
	}
	return errors.Join(sleep(ctx, lasts), b.Continue())
}

func lie(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	b, kinds := w.Engines[r.IntN(len(w.Engines))], fake.Garbages()
	kind := kinds[r.IntN(len(kinds))]
	e.Target, e.Detail = b.ID, kind.String()
	if err := fake.Lie(ctx, b.URL, kind); err != nil {
		return err
	}
	return errors.Join(sleep(ctx, between(r, time.Second, 3*time.Second)), fake.Lie(ctx, b.URL, fake.Sound))
}

func blockLog(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	lasts := between(r, 2*time.Second, 5*time.Second)
	e.Target, e.Detail = w.Cluster.Nodes[0].Place.Name, "for "+lasts.Round(time.Millisecond).String()
	w.Log.Block()
	defer w.Log.Drain()
	return sleep(ctx, lasts)
}

// jumps are where a clock is set; each is undone after a second or two.
var jumps = []time.Duration{time.Hour, -time.Hour, 400 * 24 * time.Hour, -20 * 365 * 24 * time.Hour, 30 * time.Second, -30 * time.Second}

func jump(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	n, by := w.anyNode(r, e), jumps[r.IntN(len(jumps))]
	e.Detail = "by " + by.String()
	c, err := OpenClock(n.PID)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Move(by); err != nil {
		return err
	}
	return errors.Join(sleep(ctx, between(r, time.Second, 3*time.Second)), c.Move(0))
}

// starve takes the node's last descriptors by connections that say nothing.
func starve(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	e.Target = w.Starved.Place.Name
	var clients flood
	defer func() {
		clients.close()
		e.Ended = time.Now().Add(aftermath) // the node's own pause between two tries to accept
	}()
	if err := clients.open(ctx, w.Starved.Client, 2*w.Descriptors); err != nil {
		return err
	}
	e.Detail = fmt.Sprintf("%d idle connections for %d descriptors", len(clients), w.Descriptors)
	return sleep(ctx, between(r, time.Second, 3*time.Second))
}

// makeNoise sends garbage from within the network of the nodes.
func makeNoise(ctx context.Context, w *World, r *rand.Rand, e *Event) error {
	w.noises++
	args := append([]string{}, w.anyNode(r, e).Enter...)
	if len(args) > 0 {
		args = args[:4] // into the namespace only, not what else is in front of kvca
	}
	args = append(args, w.Noise...)
	for _, n := range w.Cluster.Nodes {
		args = append(args, n.Gossip, n.Link)
	}
	child, err := process.Start(ctx, process.Spec{Name: fmt.Sprintf("noise-%d", w.noises), Dir: w.Dir, Args: args})
	if err != nil {
		return err
	}
	defer child.Close()
	select {
	case <-child.Exited():
	case <-ctx.Done():
		return ctx.Err()
	}
	e.Detail = child.Log()
	return nil
}

func reload(ctx context.Context, w *World, _ *rand.Rand, e *Event) error {
	w.configured++
	e.Detail = fmt.Sprintf("version %d", w.configured)
	if err := w.Configure(w.configured); err != nil {
		return err
	}
	for _, n := range w.Cluster.Nodes {
		if err := n.Signal(syscall.SIGHUP); err != nil {
			return err
		}
	}
	return sleep(ctx, time.Second)
}
