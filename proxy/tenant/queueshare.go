package tenant

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kvca/state/turn"
)

const (
	// mostCalled bounds the waiters at other nodes that are called from here.
	mostCalled = 65536
	// mostCrowded bounds the pools of which is known that somebody waits elsewhere.
	mostCrowded = 4096
	// crowdedEvery is how often it is said that somebody waits for a pool,
	// crowdedFor how long that holds. A caller that is not heard of for so long is not
	// asked for notAsked.
	crowdedEvery = 300 * time.Millisecond
	crowdedFor   = time.Second
	notAsked     = 5 * time.Second
	// graceLeft is how long after its deadline a waiter at another node is kept, whose
	// own node should have taken it back.
	graceLeft = 5 * time.Second
)

// Peers are the other nodes of a cluster.
type Peers interface {
	// Caller is the node that calls for a pool, "" for this one, or where that node
	// can't be reached.
	Caller(pool string) string
	// Tell sends a message, false where that can't be done. It does not wait.
	Tell(node string, m *turn.Message) bool
	// TellAll sends a message to all who can be reached.
	TellAll(m *turn.Message)
}

// share is a queue's part in that of all nodes. The queue's mutex guards it; what is
// sent is sent under it, so that it goes in the order in which it happened.
type share struct {
	peers Peers // nil: there are none
	// room is that of a pool that others wait for; false where there is no such.
	room func(pool string, backends uint64) (int, bool)

	// callers are those of the pools that somebody here waits for, waits are who does.
	callers map[string]*poolCaller
	waits   map[uint64]*entry
	lastID  uint64

	// called are the waiters at other nodes that are called from here; announced says
	// of which pools the others know that somebody waits, and when they were told.
	called    map[waiterAt]*entry
	announced map[string]time.Time

	// crowded are the pools that others call for and somebody waits for.
	crowded map[string]time.Time
}

// waiterAt is who waits at another node.
type waiterAt struct {
	node string
	id   uint64
}

// poolCaller is who calls for a pool that somebody here waits for.
type poolCaller struct {
	node  string    // "" for this one
	heard time.Time // when it last said that somebody waits; before, when it was asked
	until time.Time // it is not asked before
}

func newShare() share {
	return share{
		callers: make(map[string]*poolCaller), waits: make(map[uint64]*entry), called: make(map[waiterAt]*entry),
		announced: make(map[string]time.Time), crowded: make(map[string]time.Time),
	}
}

// Share makes the queue one of all nodes: who waits has its turn among all who wait
// for the same pool. room says how many requests more a pool takes, false for a pool
// that is unknown here, or has other backends than those unless they are 0; it is called as a Room is. It is called once, before Enter;
// messages that come earlier are dropped.
func (q *Queue) Share(peers Peers, room func(pool string, backends uint64) (free int, known bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.share.peers, q.share.room = peers, room
}

// callerOf is who calls for the pool, made if need be. q.mu is held.
func (q *Queue) callerOf(pool string, now time.Time) *poolCaller {
	p := q.share.callers[pool]
	if p == nil {
		p = &poolCaller{node: q.share.caller(pool), heard: now}
		q.share.callers[pool] = p
	}
	return p
}

func (s *share) caller(pool string) string {
	if s.peers == nil {
		return ""
	}
	return s.peers.Caller(pool)
}

// put puts e, which waits here, before its caller. q.mu is held.
func (q *Queue) put(e *entry, now time.Time) {
	if e.id == 0 {
		q.share.lastID++
		e.id = q.share.lastID
		q.share.waits[e.id] = e
	}
	p := q.callerOf(e.pool, now)
	if p.node != "" && !q.share.peers.Tell(p.node, q.waitOf(e, now)) {
		p.until = now.Add(notAsked)
		q.move(e.pool, p, "", now)
		return
	}
	if p.node == "" && e.called == nil {
		e.called = &entry{Waiter: e.Waiter, pool: e.pool, since: e.since, room: e.room, waiter: e}
		e.called.Bytes, e.called.Deadline = 0, e.Deadline.Add(time.Hour) // it is taken out with e
		q.calls.add(e.called)
	}
}

func (q *Queue) waitOf(e *entry, now time.Time) *turn.Message {
	return &turn.Message{
		Op: turn.Wait, Pool: e.pool, ID: e.id, Tenant: e.Tenant, Class: uint8(e.Class), Weight: e.Weight,
		Waited: now.Sub(e.since), Left: e.Deadline.Sub(now), Backends: e.Backends,
	}
}

// withdraw takes e back from its caller: it waits no more. q.mu is held.
func (q *Queue) withdraw(e *entry) {
	delete(q.share.waits, e.id)
	if e.called != nil {
		q.calls.drop(e.called)
		e.called = nil
	} else if p := q.share.callers[e.pool]; p != nil && p.node != "" {
		q.share.peers.Tell(p.node, &turn.Message{Op: turn.Leave, Pool: e.pool, ID: e.id})
	}
	q.leaveCaller(e.pool)
}

// leaveCaller forgets the caller of a pool that nobody here waits for any more.
func (q *Queue) leaveCaller(pool string) {
	if q.order.inLine(pool) == 0 {
		delete(q.share.callers, pool)
	}
}

// release lets one in who waits here.
func (q *Queue) release(e *entry) {
	q.order.drop(e)
	e.called = nil
	delete(q.share.waits, e.id)
	q.leaveCaller(e.pool)
	e.done <- nil
}

// move puts all who wait here for a pool before another caller, in the order in which
// they came. q.mu is held.
func (q *Queue) move(pool string, p *poolCaller, node string, now time.Time) {
	old := p.node
	p.node, p.heard = node, now
	l := q.order.lines[pool]
	if l == nil {
		return
	}
	var all []*entry
	for c := range l.class {
		for _, f := range l.class[c].busy {
			for e := f.first; e != nil; e = e.next {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	for _, e := range all {
		switch {
		case e.called != nil:
			q.calls.drop(e.called)
			e.called = nil
		case old != "":
			q.share.peers.Tell(old, &turn.Message{Op: turn.Leave, Pool: pool, ID: e.id})
		}
	}
	for _, e := range all {
		if q.put(e, now); p.node != node {
			return // it can't be told, so all were put elsewhere
		}
	}
}

// tend follows callers that change, or fall silent. q.mu is held.
func (q *Queue) tend(now time.Time) {
	for pool, p := range q.share.callers {
		if p.node != "" && now.Sub(p.heard) > crowdedFor {
			p.until = now.Add(notAsked)
		}
		node := ""
		if !now.Before(p.until) {
			node = q.share.caller(pool)
		}
		if node != p.node {
			q.move(pool, p, node, now)
		}
	}
}

// pollEvery is when the queue next looks by itself. Nodes that do without their caller
// find room in this way only, so they must not look in step.
func (s *share) pollEvery() time.Duration {
	if s.peers == nil {
		return pollRoomEvery
	}
	return pollRoomEvery/2 + rand.N(pollRoomEvery)
}

// isApart is whether this node calls for a pool that is another's to call for. Then
// room is for whichever node finds it by its next look: else the one that has all slots
// would keep them.
func (q *Queue) isApart(pool string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.share.callers[pool]
	return p != nil && p.node == "" && time.Now().Before(p.until)
}

// freedElsewhere tells another caller, if there is one, that a request of a pool has
// ended that somebody waits for.
func (q *Queue) freedElsewhere(pool string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return (q.share.callers[pool] != nil || q.share.isCrowded(pool, time.Now())) && q.tellCaller(pool, turn.Freed)
}

func (q *Queue) bookedElsewhere(pool string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tellCaller(pool, turn.Booked)
}

// tellCaller is false where the pool is called from here. q.mu is held.
func (q *Queue) tellCaller(pool string, op turn.Op) bool {
	node := ""
	if p := q.share.callers[pool]; p != nil {
		node = p.node
	} else {
		node = q.share.caller(pool)
	}
	return node != "" && q.share.peers.Tell(node, &turn.Message{Op: op, Pool: pool})
}

// isCrowded is whether somebody waits for a pool that others call for. q.mu is held.
func (s *share) isCrowded(pool string, now time.Time) bool {
	at, ok := s.crowded[pool]
	if ok && now.Sub(at) > crowdedFor {
		delete(s.crowded, pool)
		return false
	}
	return ok
}

// callElsewhere tells a waiter at another node that its turn has come. q.mu is held.
func (q *Queue) callElsewhere(e *entry) {
	delete(q.share.called, waiterAt{e.node, e.id})
	q.metrics.turns[turnOther].Inc()
	q.share.peers.Tell(e.node, &turn.Message{Op: turn.Go, Pool: e.pool, ID: e.id}) // else its link is down, and Gone comes
}

// forgetLate drops waiters at other nodes that should have been taken back long ago.
func (q *Queue) forgetLate(now time.Time) {
	for _, e := range q.calls.expire(now) {
		if e.waiter == nil {
			delete(q.share.called, waiterAt{e.node, e.id})
		} else {
			e.waiter.called = nil
		}
	}
}

// announce tells the other nodes for which of the pools that are called from here
// somebody waits. q.mu is held.
func (q *Queue) announce(now time.Time) {
	s := &q.share
	if s.peers == nil {
		return
	}
	for pool := range q.calls.lines {
		if now.Sub(s.announced[pool]) >= crowdedEvery {
			s.announced[pool] = now
			s.peers.TellAll(&turn.Message{Op: turn.Crowded, Pool: pool})
		}
	}
	for pool := range s.announced {
		if q.calls.inLine(pool) == 0 {
			delete(s.announced, pool)
			s.peers.TellAll(&turn.Message{Op: turn.Empty, Pool: pool})
		}
	}
}

// Hear takes a message of another node.
func (q *Queue) Hear(node string, m *turn.Message) {
	q.mu.Lock()
	if q.share.peers == nil {
		q.mu.Unlock()
		return
	}
	now := time.Now()
	look := false
	switch m.Op {
	case turn.Wait:
		look = q.call(node, m, now)
	case turn.Leave:
		look = q.uncall(node, m)
	case turn.Booked:
		q.calls.booked(m.Pool)
		look = true
	case turn.Freed:
		look = true
	case turn.Go:
		q.called(node, m)
	case turn.No:
		if p := q.share.callers[m.Pool]; p != nil && p.node == node {
			p.until = now.Add(notAsked)
			q.move(m.Pool, p, "", now)
			look = true
		}
	case turn.Crowded:
		q.crowded(node, m.Pool, now)
	case turn.Empty:
		delete(q.share.crowded, m.Pool)
	}
	q.settle()
	q.mu.Unlock()
	if look {
		q.admit(m.Pool)
	}
	if m.Op == turn.Wait {
		q.mu.Lock()
		q.announce(time.Now())
		q.settle()
		q.mu.Unlock()
	}
}

// call lets a waiter at another node wait for its turn here, or says no.
func (q *Queue) call(node string, m *turn.Message, now time.Time) bool {
	at := waiterAt{node, m.ID}
	_, known := q.share.room(m.Pool, m.Backends)
	if !known || len(q.share.called) >= mostCalled || q.share.called[at] != nil {
		q.share.peers.Tell(node, &turn.Message{Op: turn.No, Pool: m.Pool, ID: m.ID})
		return false
	}
	w := Waiter{Tenant: m.Tenant, Class: int(m.Class), Weight: m.Weight, Deadline: now.Add(m.Left + graceLeft)}
	pool, room := m.Pool, q.share.room
	e := &entry{Waiter: w.within(), pool: pool, since: now.Add(-m.Waited), node: node, id: m.ID, room: func() int {
		if free, known := room(pool, 0); known {
			return free
		}
		return math.MaxInt // there is nothing to wait for any more
	}}
	q.share.called[at] = e
	q.calls.add(e)
	return true
}

// uncall takes a waiter at another node out. One whose turn had come meanwhile did
// not use it.
func (q *Queue) uncall(node string, m *turn.Message) bool {
	at := waiterAt{node, m.ID}
	e := q.share.called[at]
	if e == nil {
		q.calls.booked(m.Pool)
		return true
	}
	delete(q.share.called, at)
	q.calls.drop(e)
	return false
}

// called lets one in who waits here and whose turn another node says has come. One
// that has left meanwhile was taken back.
func (q *Queue) called(node string, m *turn.Message) {
	e, p := q.share.waits[m.ID], q.share.callers[m.Pool]
	if e != nil && p != nil && p.node == node && e.pool == m.Pool {
		q.release(e)
	}
}

// crowded remembers that somebody waits for a pool.
func (q *Queue) crowded(node, pool string, now time.Time) {
	if p := q.share.callers[pool]; p != nil && p.node == node {
		p.heard = now
	}
	if _, ok := q.share.crowded[pool]; ok || len(q.share.crowded) < mostCrowded {
		q.share.crowded[pool] = now
	}
}

// Gone is told of a node that can't be reached: who waits there has its turn no more
// from here, and who waits here for a turn from there is called here.
func (q *Queue) Gone(node string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for at, e := range q.share.called {
		if at.node == node {
			delete(q.share.called, at)
			q.calls.drop(e)
		}
	}
	now := time.Now()
	for pool, p := range q.share.callers {
		if p.node == node {
			q.move(pool, p, "", now)
		}
	}
	q.settle()
}
