package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// StartTime is how long a cluster may take until its nodes are ready and see
// each other.
const StartTime = 60 * time.Second

// poll is the time between two questions to nodes that are waited for.
const poll = 10 * time.Millisecond

// Config is what a cluster is made of.
type Config struct {
	// Kvca is the path of the program, Dir takes its logs.
	Kvca, Dir string
	Places    []Place
	// Backends are base URLs, the same for all nodes.
	Backends []string
	// Flags are added to every node's command line.
	Flags []string
}

// Cluster is several nodes. Close ends them.
type Cluster struct {
	Config
	Nodes []*Node
}

// Start starts the nodes and returns when all are ready and see each other.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if _, err := os.Stat(cfg.Kvca); err != nil {
		return nil, fmt.Errorf("start nodes: %w (build it first)", err)
	}
	c := &Cluster{Config: cfg}
	for _, p := range cfg.Places {
		n := &Node{Place: p, cluster: c}
		if err := n.start(ctx); err != nil {
			c.Close()
			return nil, err
		}
		c.Nodes = append(c.Nodes, n)
	}
	if err := c.awaitStart(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) awaitStart(ctx context.Context) error {
	began := time.Now()
	for _, n := range c.Nodes {
		if err := n.awaitReady(ctx, StartTime-time.Since(began)); err != nil {
			return err
		}
	}
	_, err := Await(ctx, StartTime, func(ctx context.Context) error {
		return errors.Join(Whole(ctx, c.Nodes), Owned(ctx, c.Nodes))
	})
	return err
}

// StartOne starts one more node and returns the time until it was ready.
func (c *Cluster) StartOne(ctx context.Context, p Place) (*Node, time.Duration, error) {
	n := &Node{Place: p, cluster: c}
	c.Nodes = append(c.Nodes, n)
	took, err := n.Restart(ctx, StartTime)
	return n, took, err
}

// Others are the nodes that run, without one.
func (c *Cluster) Others(without *Node) []*Node {
	var others []*Node
	for _, n := range c.Nodes {
		if n != without && !n.down {
			others = append(others, n)
		}
	}
	return others
}

// Addrs are where clients reach nodes.
func Addrs(list []*Node) []string {
	addrs := make([]string, len(list))
	for i, n := range list {
		addrs[i] = n.Client
	}
	return addrs
}

// Close ends all nodes at once and waits for them.
func (c *Cluster) Close() {
	var ending sync.WaitGroup
	for _, n := range c.Nodes {
		if n.Running == nil {
			continue
		}
		if n.down {
			_ = n.Continue() // one that has ended can't be signalled
		}
		ending.Go(n.Child.Close)
	}
	ending.Wait()
}

// Await repeats a check until it holds and returns how long that took. The error
// after the limit is the check's last one.
func Await(ctx context.Context, limit time.Duration, check func(ctx context.Context) error) (time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return time.Since(began), nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // not the one that says that the time is over
		}
		select {
		case <-ctx.Done():
			return limit, fmt.Errorf("not within %v: %w", limit, last)
		case <-time.After(poll):
		}
	}
}
