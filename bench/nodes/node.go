package nodes

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"kvca/bench/gateway"
	"kvca/bench/process"
)

// maxJoin is how many others a node is told of at its start.
const maxJoin = 3

// Node is one kvca process of a cluster, which may be another one after Restart.
type Node struct {
	Place
	*gateway.Running
	cluster *Cluster
	// starts counts the processes there were.
	starts int
	down   bool
}

// args is the command line of a node.
func (n *Node) args() []string {
	c := &n.cluster.Config
	args := append(slices.Clone(n.Enter), c.Kvca, "serve", "--node-name", n.Place.Name, "--listen", n.Client, "--admin", n.Place.Admin,
		"--gossip", n.Gossip, "--link", n.Link, "--log-level", "warn")
	joins := 0
	for _, p := range c.Places {
		if p.Name != n.Place.Name && joins < maxJoin {
			args = append(args, "--join", p.Gossip)
			joins++
		}
	}
	for i, b := range c.Backends {
		args = append(args, "--backend", BackendID(i)+"="+b)
	}
	return append(append(args, c.Flags...), n.Flags...)
}

// BackendID is what a cluster's nodes call their i-th backend.
func BackendID(i int) string { return fmt.Sprintf("fake-%d", i) }

// start starts the process, and does not wait until it serves.
func (n *Node) start(ctx context.Context) error {
	n.starts++
	child, err := process.Start(ctx, process.Spec{
		Name: fmt.Sprintf("%s-%d", n.Place.Name, n.starts), Dir: n.cluster.Dir, Args: n.args(),
	})
	if err != nil {
		return err
	}
	n.Running = &gateway.Running{Name: n.Place.Name, Addr: n.Client, Admin: n.Place.Admin, Child: child}
	n.down = false
	return nil
}

// Kill ends the process with SIGKILL and waits for its end.
func (n *Node) Kill() {
	n.down = true
	n.Child.Kill()
}

// Drain asks the process to end, as an operator does, and returns the time until it
// has.
func (n *Node) Drain(ctx context.Context, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	n.down = true
	if err := n.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-n.Exited():
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("drain %s: it has not ended within %v", n.Place.Name, limit)
	}
}

// Stop stops the process where it is; its connections stay open.
func (n *Node) Stop() error {
	n.down = true
	return n.Signal(syscall.SIGSTOP)
}

// Continue lets a stopped process go on.
func (n *Node) Continue() error {
	n.down = false
	return n.Signal(syscall.SIGCONT)
}

// Restart starts a node that has ended again, with its name and its addresses,
// and returns the time until it was ready.
func (n *Node) Restart(ctx context.Context, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := n.start(ctx); err != nil {
		return 0, err
	}
	err := n.awaitReady(ctx, limit)
	return time.Since(began), err
}

// awaitReady waits until the node says that it is ready.
func (n *Node) awaitReady(ctx context.Context, limit time.Duration) error {
	if err := n.Await(ctx, limit, func() error { return n.Ready(ctx) }); err != nil {
		return fmt.Errorf("wait for %s: %w", n.Place.Name, err)
	}
	return nil
}
