package engine

import (
	"kvca/bench/publish"
)

// disturbance is the body of POST /sim/events.
type disturbance struct {
	// Mode is one of publish's faults (lost, hole, twice, swapped, short-replay), which happens to the next batches or replays, or
	// restart, which happens at once: an empty cache that nobody is told of, and numbers from 0.
	Mode  string `json:"mode"`
	Count *int   `json:"count"` // how often; 1 by default
}

func (c *call) disturbEvents() (any, error) {
	var o disturbance
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	p := c.s.publisher.Load()
	if p == nil {
		return nil, badRequest("mode", "this server publishes no events: start it with ServerConfig.Events")
	}
	if o.Mode == "restart" {
		c.s.Inspect(func(e *Engine) {
			e.Restart()
			p.Restart()
		})
		return done, nil
	}
	count := 1
	if o.Count != nil {
		count = *o.Count
	}
	if err := p.Fault(publish.Fault(o.Mode), count); err != nil {
		return nil, badRequest("mode", "%v, or \"restart\"", err)
	}
	return done, nil
}
