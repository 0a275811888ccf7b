package sim

import (
	"time"

	"kvca/bench/trace"
)

// job is one request of the trace on its way: from its client to a node, to an
// engine, and back.
type job struct {
	request *trace.Request
	session *session
	index   int    // in the session
	number  uint64 // in the order of sending, unique

	node    int // where it was sent last
	backend int // where that sent it, nobody before
	tried   []int
	ticket  any // the gateway's own, of the decision that holds
	id      uint64

	// leg counts the turns that its course has taken. What was under way before a
	// turn, an answer over a connection that has broken, is not heard any more.
	leg      int
	reserved bool // the gateway has decided, and was not told of the end
	begun    bool // the gateway has seen the first token
	answered bool // the gateway has seen the whole answer
	failed   bool // there will be no answer, or no more of it

	sent    time.Duration // first
	arrived time.Duration // first, at a gateway
	cached  int           // prompt tokens that the engine had
}

// hop is the time between client and gateway, and between gateway and engine, one
// way: a network within a data centre, and the work at either end.
const hop = 500 * time.Microsecond

// attempts is how many backends a gateway tries a request on, as the product's
// proxy does by default.
const attempts = 3

// later lets do happen when d has passed, unless j's course turns before.
func (s *simulation) later(j *job, d time.Duration, do func()) {
	leg := j.leg
	s.loop.after(d, func() {
		if j.leg == leg {
			do()
		}
	})
}

// arrive is at the gateway, where the client's connection may be refused.
func (s *simulation) arrive(j *job) {
	if j.arrived == 0 {
		j.arrived = s.loop.now
	}
	if !s.clients.up[j.node] {
		s.later(j, hop, func() { s.resend(j) })
		return
	}
	s.route(j)
}

func (s *simulation) route(j *job) {
	j.leg++
	leg := j.leg
	s.gate.route(j, func(backend int, ticket any) {
		if j.leg == leg {
			s.decided(j, backend, ticket)
		}
	})
}

func (s *simulation) decided(j *job, backend int, ticket any) {
	j.backend, j.ticket = backend, ticket
	if backend == nobody {
		s.fail(j)
		return
	}
	j.reserved = true
	s.later(j, hop, func() { s.engines.submit(backend, j) })
}

// The events that a request meets at an engine come here as they happen there;
// the gateway learns of them one hop later, the client two.

func (s *simulation) refused(j *job) {
	s.later(j, hop, func() { s.broken(j) })
}

func (s *simulation) rejected(j *job) {
	s.later(j, hop, func() {
		s.end(j)
		s.fail(j)
	})
}

func (s *simulation) firstToken(j *job, cached int) {
	j.cached = cached
	s.figures.prefilled(j)
	s.later(j, hop, func() {
		j.begun = true
		s.gate.begin(j)
		s.later(j, hop, func() { s.figures.seen(j, s.loop.now-j.arrived) })
	})
}

func (s *simulation) done(j *job) {
	s.later(j, hop, func() {
		j.answered = true
		s.end(j)
		s.later(j, hop, func() { s.over(j) })
	})
}

// end tells the gateway that a request is over, if there is anything to tell.
func (s *simulation) end(j *job) {
	if j.reserved {
		j.reserved = false
		s.gate.end(j)
		j.ticket = nil
	}
}

// broken is a connection to an engine that broke or was refused: as long as no
// byte has gone to the client, another backend is tried.
func (s *simulation) broken(j *job) {
	s.end(j)
	j.tried = append(j.tried, j.backend)
	if j.begun || len(j.tried) >= attempts {
		s.fail(j)
		return
	}
	s.figures.retried++
	s.route(j)
}

// orphaned is a request whose node was killed. Its client sends it again, unless
// it has had a part of the answer.
func (s *simulation) orphaned(j *job) {
	j.leg++
	s.end(j)
	s.engines.cancel(j)
	if j.begun || j.failed {
		s.fail(j)
		return
	}
	s.later(j, hop, func() { s.resend(j) })
}

// fail tells the client that there will be no answer, or no more of it.
func (s *simulation) fail(j *job) {
	if !j.failed {
		j.failed = true
		s.figures.failed++
	}
	s.later(j, hop, func() { s.over(j) })
}
