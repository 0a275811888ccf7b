package link

import "time"

const (
	// probeEvery is how often the round trip is measured on a busy link, where
	// heartbeats are not needed.
	probeEvery = 5 * time.Second
	// A keeper that wakes this much too late knows that this process stood still,
	// and lets the reader see first what came meanwhile.
	stoodStill = 200 * time.Millisecond
	graceTime  = 100 * time.Millisecond
)

// keep is the keeper's goroutine: it sends heartbeats, ends the link with its
// lease, and closes the connection once the link has ended.
func (p *Peer) keep() {
	p.ping()
	probed := p.since()
	wait := min(p.l.c.Heartbeat, p.l.c.Lease)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		due := p.since() + int64(wait)
		select {
		case <-p.ended:
			p.farewell(p.ending)
			p.conn.Close()
			return
		case <-timer.C:
		}
		now := p.since()
		if now-due > int64(stoodStill) {
			wait = graceTime
		} else {
			wait = p.tick(now, &probed)
		}
		timer.Reset(wait)
	}
}

// tick does what is due and returns in how long it is to be called again.
func (p *Peer) tick(now int64, probed *int64) time.Duration {
	c := &p.l.c
	silent := time.Duration(now - p.lastFrame.Load())
	if silent >= c.Lease {
		p.end(endedf(byLease, "nothing heard for %v", silent.Round(time.Millisecond)))
		return c.Lease
	}
	if !p.confirmed.Load() && time.Duration(now) >= c.Linger {
		p.end(endedf(byNotMember, "%q with boot %x is no member here", p.Name(), p.Boot()))
		return c.Lease
	}
	p.observeQueue()
	quiet := time.Duration(now - p.lastSent.Load())
	if quiet >= c.Heartbeat || time.Duration(now-*probed) >= probeEvery {
		p.ping()
		*probed, quiet = now, 0
	}
	return min(c.Lease-silent, c.Heartbeat-quiet)
}

func (p *Peer) observeQueue() {
	for l := range lanes {
		p.m.queue[l].Set(float64(p.Queued(Lane(l))))
	}
}
