package nodes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"kvca/bench/gateway"
)

const (
	// askTime is how long a node may take to say that it is ready.
	askTime = 500 * time.Millisecond
	// silences is how often in a row it may fail to say anything until it is taken to
	// be away. One that says that it is not ready, or whose host refuses the connection,
	// is away at once.
	silences = 2
)

// Balancer knows which nodes are ready, as a load balancer does. Each node has its
// own asker, since one that is away must not hide the others. Close ends them.
type Balancer struct {
	nodes  []balanced
	stop   context.CancelFunc
	asking sync.WaitGroup
}

// balanced is one node as the balancer sees it; why is nil while it is ready.
type balanced struct {
	addr string
	why  atomic.Pointer[error]
}

// Watch asks the nodes again and again.
func Watch(ctx context.Context, list []*Node, every time.Duration) *Balancer {
	b := &Balancer{nodes: make([]balanced, len(list))}
	ctx, b.stop = context.WithCancel(ctx)
	for i, n := range list {
		b.nodes[i].addr = n.Client
		// A Node is another process after a restart; its addresses stay.
		asker := &gateway.Running{Name: n.Place.Name, Admin: n.Place.Admin}
		b.asking.Go(func() { b.nodes[i].watch(ctx, asker, every) })
	}
	return b
}

func (n *balanced) watch(ctx context.Context, asker *gateway.Running, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	silent := 0
	for {
		ask, done := context.WithTimeout(ctx, askTime)
		err := asker.Ready(ask)
		done()
		switch {
		case err == nil:
			silent = 0
			n.why.Store(nil)
		case !errors.Is(err, context.DeadlineExceeded):
			n.why.Store(&err)
		default:
			if silent++; silent >= silences {
				n.why.Store(&err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Ready are the addresses at which clients are served now.
func (b *Balancer) Ready() []string {
	var list []string
	for i := range b.nodes {
		if b.nodes[i].why.Load() == nil {
			list = append(list, b.nodes[i].addr)
		}
	}
	return list
}

// Why says what keeps the others from it.
func (b *Balancer) Why() error {
	var faults []error
	for i := range b.nodes {
		if why := b.nodes[i].why.Load(); why != nil {
			faults = append(faults, *why)
		}
	}
	return errors.Join(faults...)
}

// Close ends the askers and waits for them.
func (b *Balancer) Close() {
	b.stop()
	b.asking.Wait()
}
