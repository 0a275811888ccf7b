package nodes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kvca/bench/gateway"
)

// askTime is how long a node may take to say that it is ready.
const askTime = 300 * time.Millisecond

// Balancer knows which nodes are ready, as a load balancer does. Each node has its
// own asker, since one that is away must not hide the others. Close ends them.
type Balancer struct {
	addrs  []string
	up     []atomic.Bool
	stop   context.CancelFunc
	asking sync.WaitGroup
}

// Watch asks the nodes again and again.
func Watch(ctx context.Context, list []*Node, every time.Duration) *Balancer {
	b := &Balancer{addrs: Addrs(list), up: make([]atomic.Bool, len(list))}
	ctx, b.stop = context.WithCancel(ctx)
	for i, n := range list {
		// A Node is another process after a restart; its addresses stay.
		asker := &gateway.Running{Name: n.Place.Name, Admin: n.Place.Admin}
		b.up[i].Store(true)
		b.asking.Go(func() { b.watch(ctx, asker, &b.up[i], every) })
	}
	return b
}

func (b *Balancer) watch(ctx context.Context, asker *gateway.Running, up *atomic.Bool, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ask, done := context.WithTimeout(ctx, askTime)
		up.Store(asker.Ready(ask) == nil)
		done()
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
	for i, addr := range b.addrs {
		if b.up[i].Load() {
			list = append(list, addr)
		}
	}
	return list
}

// Close ends the askers and waits for them.
func (b *Balancer) Close() {
	b.stop()
	b.asking.Wait()
}
