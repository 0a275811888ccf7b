package simnet

import (
	"slices"
	"time"
)

const maxPipe = 64 << 10 // bytes sent and not yet read, one direction

type segment struct {
	at   time.Time
	data []byte
}

// pipe is one direction of a stream. Fields are guarded by the network's mutex.
type pipe struct {
	net      *Network
	from, to *Host

	flight []segment // on the way, in order of arrival
	ready  []byte    // arrived
	size   int       // bytes of both
	last   time.Time // when the last segment arrives
	ended  bool      // the writer closed; seen after all else arrived, not before last
	gone   bool      // the reader closed
	reset  error     // the connection is broken

	changed chan struct{} // closed by wake; nil while nobody waits
}

func newPipe(from, to *Host) *pipe {
	return &pipe{net: from.net, from: from, to: to}
}

func (p *pipe) wake() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// arrive moves to ready what has come by now.
func (p *pipe) arrive(now time.Time) {
	if !p.net.reach(p.from, p.to) {
		return
	}
	n := 0
	for n < len(p.flight) && !p.flight[n].at.After(now) {
		p.ready = append(p.ready, p.flight[n].data...)
		n++
	}
	p.flight = slices.Delete(p.flight, 0, n)
}

// put sends as much of b as there is room for and says how much that was.
func (p *pipe) put(b []byte, now time.Time) int {
	n := min(len(b), maxPipe-p.size)
	if n == 0 {
		return 0
	}
	p.hold(now)
	p.flight = append(p.flight, segment{p.last, slices.Clone(b[:n])})
	p.size += n
	p.wake()
	return n
}

// hold moves last to when something sent now arrives: never before what went ahead.
func (p *pipe) hold(now time.Time) {
	at := now.Add(p.net.draw(p.net.streams))
	if at.After(p.last) {
		p.last = at
	}
}

// take reads what is ready into b.
func (p *pipe) take(b []byte) int {
	n := copy(b, p.ready)
	p.ready = p.ready[n:]
	if len(p.ready) == 0 {
		p.ready = nil
	}
	p.size -= n
	p.wake()
	return n
}

// due is when the reader has something new to look at; zero if nothing is known to come.
func (p *pipe) due() time.Time {
	switch {
	case !p.net.reach(p.from, p.to):
		return time.Time{}
	case len(p.flight) > 0:
		return p.flight[0].at
	case p.ended:
		return p.last
	}
	return time.Time{}
}

// over tells whether the writer's end has been reached.
func (p *pipe) over(now time.Time) bool {
	return p.ended && p.size == 0 && p.net.reach(p.from, p.to) && !now.Before(p.last)
}
