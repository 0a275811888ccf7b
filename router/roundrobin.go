package router

import "sync/atomic"

// roundRobin takes the backends in turn.
type roundRobin struct{ next atomic.Uint64 }

func (*roundRobin) looks() bool { return false }

func (p *roundRobin) order(q *question) {
	q.offer(int((p.next.Add(1)-1)%uint64(len(q.eligible))), 0)
}
