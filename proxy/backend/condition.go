package backend

import (
	"time"

	"kvca/router"
)

type health uint8

const (
	healthStarting health = iota // no verdict yet
	healthy
	unhealthy
)

var healthNames = [...]string{"starting", "healthy", "unhealthy"}

func (h health) String() string { return healthNames[h] }

// unhealthyAfter is how many probes in a row must fail. A refused connect needs
// no second.
const unhealthyAfter = 2

// slowStartFrom is the share of its weight with which a backend returns.
const slowStartFrom = 0.1

// verdict is what a probe found.
type verdict uint8

const (
	probeOK      verdict = iota
	probeLate            // no answer in time
	probeBad             // an answer that is none
	probeLoading         // 503: there, but not ready
	probeRefused         // nobody listens
)

// condition is everything that decides a backend's standing: probes, the breaker
// and the operator's drain. It is a plain state machine: its owner holds the lock
// and brings the time.
type condition struct {
	health   health
	breaker  breaker
	drained  bool
	served   bool      // was available once: what comes after is a return
	misses   int       // failed probes in a row
	since    time.Time // of the health
	returned time.Time // when its slow start began; zero when over
	gone     bool      // was refused since it last was healthy: perhaps restarted
	lastErr  string
}

// standing is what decisions go by.
func (c *condition) standing() router.Standing {
	switch {
	case c.drained:
		return router.Draining
	case c.health == healthStarting:
		return router.Starting
	case c.health == unhealthy:
		return router.Unhealthy
	case c.breaker.state == breakerOpen:
		return router.Broken
	}
	return router.Available
}

// shown is the health as people and peers see it.
func (c *condition) shown() string {
	if c.drained {
		return router.Draining.String()
	}
	return c.health.String()
}

// probed takes in a probe's verdict. excused says that the backend has begun an
// answer since the last probe, so that a late answer is a matter of load.
func (c *condition) probed(v verdict, excused bool, now time.Time) {
	switch {
	case v == probeOK:
		c.up(now)
	case v == probeLate && excused && c.health == healthy:
		c.misses = 0
	case v == probeLoading && c.health == healthStarting:
		c.misses = 0
	default:
		c.misses++
		if v == probeRefused || c.misses >= unhealthyAfter {
			c.down(now, v == probeRefused)
		}
	}
}

// up makes the backend healthy, and half-opens a breaker whose time is over.
// Coming back from an outage it starts slowly, with a clean slate.
func (c *condition) up(now time.Time) {
	c.misses = 0
	switch {
	case c.health != healthy:
		c.health, c.since, c.gone = healthy, now, false
		c.breaker.reset()
		if c.served {
			c.returned = now
		}
	case c.breaker.due(now):
		c.breaker.halfOpen()
		c.returned = now
	default:
		return
	}
	c.served, c.lastErr = true, ""
}

func (c *condition) down(now time.Time, refused bool) {
	c.gone = c.gone || refused
	if c.health == unhealthy {
		return
	}
	c.health, c.since, c.returned = unhealthy, now, time.Time{}
}

// succeeded takes in a request that was served. It closes the breaker, also from
// open: the router tries a broken backend when it has no other.
func (c *condition) succeeded(now time.Time) {
	if c.breaker.state == breakerOpen {
		c.returned = now
	}
	c.breaker.reset()
}

// speed is the share of its weight at which the backend may be loaded now.
func (c *condition) speed(weight float64, slowStart time.Duration, now time.Time) float64 {
	if c.returned.IsZero() {
		return weight
	}
	return weight * SlowStart(now.Sub(c.returned), slowStart)
}

// SlowStart is the share of its weight at which a backend may be loaded that
// returned from an outage some time ago.
func SlowStart(passed, whole time.Duration) float64 {
	if passed >= whole {
		return 1
	}
	return slowStartFrom + (1-slowStartFrom)*float64(passed)/float64(whole)
}
