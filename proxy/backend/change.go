package backend

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Change gives a backend another weight, cache size, zone and other models, as c
// says. What else c says is fixed as long as the backend is there: remove it and
// add it again.
func (p *Pool) Change(c Config) error {
	c, _, err := c.resolve()
	if err != nil {
		return fmt.Errorf("change backend: %w", err)
	}
	if err := p.retune(c); err != nil {
		return fmt.Errorf("change backend %s: %w", c.ID, err)
	}
	p.log.Info("backend changed", "backend", c.ID, "weight", c.Weight, "models", c.Models, "cache_tokens", c.CacheTokens, "zone", c.Zone)
	p.config.OnChange()
	return nil
}

// Tunable is whether Change can make next of a backend that is as c says.
func (c Config) Tunable(next Config) bool {
	next.Weight, next.Zone, next.Models, next.CacheTokens = c.Weight, c.Zone, c.Models, c.CacheTokens
	return reflect.DeepEqual(c, next)
}

// retune holds the pool's lock throughout: a backend that is taken out meanwhile
// gives its slot to another one.
func (p *Pool) retune(c Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.backends[c.ID]
	switch {
	case p.closed:
		return ErrClosed
	case b == nil:
		return ErrUnknown
	}
	b.mu.Lock()
	b.config.Weight, b.config.Zone = c.Weight, c.Zone
	b.config.Models, b.config.CacheTokens = slices.Clone(c.Models), c.CacheTokens
	load, cards := b.engine.load, b.engine.cards
	b.mu.Unlock()
	b.change(func(*condition, time.Time) {}) // the speed follows the weight
	b.facts.SetRemote(p.remote(c.Zone))
	if c.CacheTokens > 0 {
		load.CacheTokens = c.CacheTokens
	}
	p.slots.SetCache(b.facts, load.CacheTokens, load.BlockTokens)
	names := c.Models
	if len(names) == 0 {
		names = cardNames(cards)
	}
	b.serve(names)
	p.publish()
	return nil
}

// remote is whether a backend's zone is known to be another than the node's.
func (p *Pool) remote(zone string) bool {
	return p.config.Zone != "" && zone != "" && zone != p.config.Zone
}
