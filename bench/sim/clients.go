package sim

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"kvca/bench/trace"
)

// clients hold the trace's sessions: each request goes to a random node of those
// that are up, when the answer that it waits for is there.
type clients struct {
	sim      *simulation
	trace    *trace.Trace
	rand     *rand.Rand
	up       []bool        // by node
	next     int           // session that starts next
	stage    int           // that it belongs to
	base     time.Duration // when that stage began
	open     int           // sessions that go on
	mostOpen int
	left     int // requests that are not over
	lastJob  uint64
	live     map[*job]struct{} // sent and not over
}

// session is one session of the trace under way.
type session struct {
	*trace.Session
	number uint64
	stage  int
	left   int
	served []int // by request: the backend that answered, nobody where none has
}

// patience is how long a client looks for a node before it gives up, and pause
// the time between two looks.
const (
	patience = time.Minute
	pause    = time.Second
)

func newClients(s *simulation, t *trace.Trace) *clients {
	c := &clients{
		sim: s, trace: t, rand: s.chance(chanceClients), up: make([]bool, s.cfg.Nodes),
		left: t.Requests(), live: make(map[*job]struct{}),
	}
	for i := range c.up {
		c.up[i] = true
	}
	return c
}

// begin starts the first sessions: one, which starts the next in its time, or as
// many as there are lanes.
func (c *clients) begin() {
	if c.trace.Lanes == 0 {
		c.await()
		return
	}
	for range min(c.trace.Lanes, len(c.trace.Sessions)) {
		c.startNext()
	}
}

// await lets the next session of the stage start in its time.
func (c *clients) await() {
	if c.next == c.stageEnd() {
		return
	}
	c.sim.loop.at(c.base+c.trace.Sessions[c.next].Start, func() {
		c.startNext()
		c.await()
	})
}

// stageEnd is the place of the session that begins the next stage.
func (c *clients) stageEnd() int {
	if c.stage < len(c.trace.Stages) {
		return c.trace.Stages[c.stage]
	}
	return len(c.trace.Sessions)
}

// nextStage begins when all requests of the one before are over.
func (c *clients) nextStage() {
	c.stage++
	c.sim.loop.after(c.trace.Pause, func() {
		c.base = c.sim.loop.now
		c.await()
	})
}

func (c *clients) startNext() {
	if c.next == len(c.trace.Sessions) {
		return
	}
	s := &session{Session: &c.trace.Sessions[c.next], number: uint64(c.next), stage: c.stage}
	c.next++
	s.left = len(s.Requests)
	if s.left == 0 {
		c.ended()
		return
	}
	s.served = make([]int, s.left)
	for i := range s.served {
		s.served[i] = nobody
	}
	c.open++
	c.mostOpen = max(c.mostOpen, c.open)
	c.follow(s, -1)
}

// follow sends the requests that wait for request i of a session.
func (c *clients) follow(s *session, i int) {
	for k := i + 1; k < len(s.Requests); k++ {
		if r := &s.Requests[k]; r.After == i {
			c.sim.loop.after(r.Think, func() { c.send(&job{request: r, session: s, index: k}) })
		}
	}
}

func (c *clients) send(j *job) {
	c.lastJob++
	j.number, j.sent = c.lastJob, c.sim.loop.now
	c.live[j] = struct{}{}
	c.sim.resend(j)
}

// resend sends a request to some node, the first time and whenever that node turns
// out to be down.
func (s *simulation) resend(j *job) {
	j.leg++
	j.backend, j.tried, j.ticket = nobody, nil, nil
	if j.node = s.clients.pick(); j.node != nobody {
		s.later(j, hop, func() { s.arrive(j) })
		return
	}
	if s.loop.now-j.sent >= patience {
		s.fail(j)
		return
	}
	s.later(j, pause, func() { s.resend(j) })
}

// pick is a random node that is up.
func (c *clients) pick() int {
	n := 0
	for _, up := range c.up {
		if up {
			n++
		}
	}
	if n == 0 {
		return nobody
	}
	k := c.rand.IntN(n)
	for i, up := range c.up {
		if up {
			if k == 0 {
				return i
			}
			k--
		}
	}
	return nobody
}

// at lists the requests that a node has, in the order in which they were sent.
func (c *clients) at(node int) []*job {
	list := slices.SortedFunc(maps.Keys(c.live), func(a, b *job) int { return cmp.Compare(a.number, b.number) })
	return slices.DeleteFunc(list, func(j *job) bool { return j.node != node })
}

// over is the end of a request as its client sees it: answered, or failed. Those
// that waited for it are sent either way.
func (s *simulation) over(j *job) {
	j.leg++
	c := s.clients
	delete(c.live, j)
	c.left--
	s.figures.over(j)
	c.follow(j.session, j.index)
	if j.session.left--; j.session.left == 0 {
		c.open--
		c.ended()
	}
}

// ended starts what waits for the end of a session: another one in a closed loop,
// the next stage where it was the last of its own.
func (c *clients) ended() {
	switch {
	case c.trace.Lanes > 0:
		c.startNext()
	case c.open == 0 && c.stage < len(c.trace.Stages) && c.next == c.stageEnd():
		c.nextStage()
	}
}
