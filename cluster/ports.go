package cluster

import (
	"context"
	"sync"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/member"
)

// What a node stands on. There are two of each: the real one, and what the caller
// of a Stepped node says.

// membership is who is there, and the facts that they gossip.
type membership interface {
	Run(ctx context.Context)
	Leave(timeout time.Duration) error
	Members() []member.Member
	Joined() <-chan struct{}
	Address() string
	Tell(f member.Fact)
	Facts() []member.Fact
	Learn(facts []member.Fact)
}

// linkage keeps links to the peers that it is told.
type linkage interface {
	Run(ctx context.Context)
	SetPeers(targets []link.Target)
}

// peerLink is one link, as link.Peer describes it.
type peerLink interface {
	Name() string
	Boot() uint64
	Hello() link.Hello
	Send(lane link.Lane, kind byte, parts ...[]byte) bool
	Queued(lane link.Lane) int
	Hold()
	Flush()
	Silence() time.Duration
	RTT() time.Duration
	Close(reason error)
}

// waiter waits until a channel is signalled, at most for limit.
type waiter interface {
	wait(ctx context.Context, signal <-chan struct{}, limit time.Duration) waited
}

// waited is how a wait ended.
type waited int

const (
	signalled waited = iota
	tooLong
	cancelled
)

// clockWaiter waits by the clock. Timers are used again.
type clockWaiter struct{ timers sync.Pool }

func newClockWaiter() *clockWaiter {
	w := &clockWaiter{}
	w.timers.New = func() any {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return w
}

func (w *clockWaiter) wait(ctx context.Context, signal <-chan struct{}, limit time.Duration) waited {
	t := w.timers.Get().(*time.Timer)
	t.Reset(limit)
	defer w.timers.Put(t)
	defer t.Stop()
	select {
	case <-signal:
		return signalled
	case <-t.C:
		return tooLong
	case <-ctx.Done():
		return cancelled
	}
}
