package tenant

import "container/heap"

// maxIdle is how many tenants without waiters are remembered in each class of a pool.
const maxIdle = 4096

// turns are those of one class of one pool: weighted shares by start-time fair
// queueing. Each tenant's first waiter has a start tag; the least goes next and puts
// the tenant's tag on by 1/weight. A tenant that comes back begins at the clock, the
// tag of who went last: it has saved nothing up, but what it took before still counts.
type turns struct {
	clock float64
	flows map[string]*flow // by tenant, idle ones included
	busy  byTurn           // those with waiters
}

// flow is one tenant's waiters, oldest first.
type flow struct {
	tenant      string
	start       float64 // of the first waiter, of the next to come where there is none
	first, last *entry
	index       int // in busy
}

// byTurn is a heap of flows: the least start comes first, the oldest of the same.
type byTurn []*flow

func (b byTurn) Len() int { return len(b) }

func (b byTurn) Less(i, j int) bool {
	if b[i].start != b[j].start {
		return b[i].start < b[j].start
	}
	return b[i].first.seq < b[j].first.seq
}

func (b byTurn) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].index, b[j].index = i, j
}

// Push is heap.Push's.
func (b *byTurn) Push(f any) {
	f.(*flow).index = len(*b)
	*b = append(*b, f.(*flow))
}

// Pop is heap.Remove's.
func (b *byTurn) Pop() any {
	end := len(*b) - 1
	f := (*b)[end]
	(*b)[end] = nil
	*b = (*b)[:end]
	return f
}

// next is whose turn it is, nil where nobody waits.
func (t *turns) next() *entry {
	if len(t.busy) == 0 {
		return nil
	}
	return t.busy[0].first
}

// charge counts the turn of e, which is its flow's first as a rule; others count alike.
func (t *turns) charge(e *entry) {
	t.clock = max(t.clock, e.flow.start)
	e.flow.start += 1 / e.Weight
	heap.Fix(&t.busy, e.flow.index)
}

// insert puts e where it belongs by its arrival.
func (t *turns) insert(e *entry) {
	f := t.flow(e.Tenant)
	was := f.first
	before := f.last
	for before != nil && before.seq > e.seq {
		before = before.prev
	}
	e.turns, e.flow, e.prev = t, f, before
	if before == nil {
		e.next, f.first = f.first, e
	} else {
		e.next, before.next = before.next, e
	}
	if e.next == nil {
		f.last = e
	} else {
		e.next.prev = e
	}
	switch {
	case was == nil:
		f.start = max(f.start, t.clock)
		heap.Push(&t.busy, f)
	case was != f.first:
		heap.Fix(&t.busy, f.index)
	}
}

func (t *turns) remove(e *entry) {
	f := e.flow
	if e.prev == nil {
		f.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		f.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	switch {
	case f.first == nil:
		f.first = e // for the heap to compare
		heap.Remove(&t.busy, f.index)
		f.first = nil
		t.idle(f)
	case e.prev == nil:
		heap.Fix(&t.busy, f.index)
	}
	e.turns, e.flow, e.prev, e.next = nil, nil, nil, nil
}

// idle remembers a flow without waiters while its tenant is ahead of the others.
func (t *turns) idle(f *flow) {
	if f.start <= t.clock {
		delete(t.flows, f.tenant)
	} else if len(t.flows)-len(t.busy) > maxIdle {
		t.forget()
	}
}

// forget drops the idle flows whose lead is used up; all of them where that isn't enough.
func (t *turns) forget() {
	for _, all := range []bool{false, true} {
		for tenant, f := range t.flows {
			if f.first == nil && (all || f.start <= t.clock) {
				delete(t.flows, tenant)
			}
		}
		if len(t.flows)-len(t.busy) <= maxIdle/2 {
			return
		}
	}
}

func (t *turns) flow(tenant string) *flow {
	f := t.flows[tenant]
	if f == nil {
		if t.flows == nil {
			t.flows = make(map[string]*flow)
		}
		f = &flow{tenant: tenant}
		t.flows[tenant] = f
	}
	return f
}
