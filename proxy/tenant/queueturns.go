package tenant

// maxIdle is how many tenants without waiters are remembered in each class of a pool.
const maxIdle = 4096

// turns are those of one class of one pool: weighted shares by start-time fair
// queueing. Each tenant's first waiter has a start tag; the least goes next and puts
// the tenant's tag on by 1/weight. A tenant that comes back begins at the clock, the tag of who went
// last: it has saved nothing up, but what it took before still counts.
type turns struct {
	clock float64
	flows map[string]*flow // by tenant, idle ones included
	busy  []*flow          // those with waiters
}

// flow is one tenant's waiters, oldest first.
type flow struct {
	tenant      string
	start       float64 // of the first waiter, of the next to come where there is none
	first, last *entry
	index       int // in busy
}

// next is whose turn it is: the least start, the oldest where two are the same.
func (t *turns) next() (best *flow) {
	for _, f := range t.busy {
		if best == nil || f.start < best.start || f.start == best.start && f.first.seq < best.first.seq {
			best = f
		}
	}
	return best
}

// charge counts the turn of e, which is its flow's first as a rule; others count alike.
func (t *turns) charge(e *entry) {
	t.clock = max(t.clock, e.flow.start)
	e.flow.start += 1 / e.Weight
}

// insert puts e where it belongs by its arrival.
func (t *turns) insert(e *entry) {
	f := t.flow(e.Tenant)
	if f.first == nil {
		f.start = max(f.start, t.clock)
		f.index = len(t.busy)
		t.busy = append(t.busy, f)
	}
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
	e.turns, e.flow, e.prev, e.next = nil, nil, nil, nil
	if f.first == nil {
		t.idle(f)
	}
}

// idle takes a flow without waiters out of the busy ones. It is remembered while its
// tenant is ahead of the others.
func (t *turns) idle(f *flow) {
	end := len(t.busy) - 1
	t.busy[f.index] = t.busy[end]
	t.busy[f.index].index = f.index
	t.busy[end] = nil
	t.busy = t.busy[:end]
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
