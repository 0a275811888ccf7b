package cluster

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state"
)

// rosterEvery is the least time between two rosters, so that a fleet that starts
// is told a few times and not once a backend.
const rosterEvery = 100 * time.Millisecond

// Bounds of what a peer may say of backends.
const (
	maxRoster     = 1 << 14
	maxRosterName = 2048
	rosterPart    = 500 // backends a frame
)

// rosterFrame is a part of a node's list of backends.
type rosterFrame struct {
	First bool `json:"first,omitempty"`
	Last  bool `json:"last,omitempty"`
	// Ready is whether the node knows what its peers know.
	Ready    bool              `json:"ready,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	Backends []Backend         `json:"backends"`
}

// FleetChanged says that backends have come, gone or changed their health here.
func (c *Cluster) FleetChanged() { c.fleetDue() }

func (c *Cluster) fleetDue() { nudge(c.fleetChanged) }

// tend follows the fleet until ctx ends: it tells the peers about backends here,
// and does here what peers tell. It is the one goroutine that changes the fleet.
func (c *Cluster) tend(ctx context.Context) {
	pause := time.NewTimer(rosterEvery)
	defer pause.Stop()
	followed := make(map[string]bool) // drains that were done here
	changes := make(map[string]change)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.fleetChanged:
		}
		c.tellRoster()
		c.followChanges(changes)
		c.followDrains(followed)
		c.followRosters()
		pause.Reset(rosterEvery)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// tellRoster tells the peers, if the list has changed since, and new links anyway.
func (c *Cluster) tellRoster() {
	list := c.cfg.Fleet.Backends()
	ready := c.Ready()
	same := ready == c.rosterReady && slices.EqualFunc(list, c.roster, sameBackend)
	c.roster, c.rosterReady = list, ready
	for _, p := range c.peers.all() {
		l := p.connected()
		if l == nil || same && p.rosterTold == l {
			continue
		}
		p.rosterTold = l
		rest := list
		for first := true; first || len(rest) > 0; first = false {
			n := min(len(rest), rosterPart)
			b, err := json.Marshal(rosterFrame{
				First: first, Last: n == len(rest), Ready: ready, Settings: c.cfg.Settings, Backends: rest[:n],
			})
			if err != nil || !p.send(link.Deltas, wire.Roster, b) {
				p.rosterTold = nil
				break
			}
			rest = rest[n:]
		}
	}
}

func sameBackend(a, b Backend) bool {
	models := slices.Equal(a.Models, b.Models)
	return models && a.ID == b.ID && a.URL == b.URL && a.Weight == b.Weight && a.CacheTokens == b.CacheTokens &&
		a.Zone == b.Zone && a.Health == b.Health && a.Learned == b.Learned
}

// hearRoster takes a peer's list, or a further part of it, but for backends that none
// could have.
func (c *Cluster) hearRoster(p *peer, body []byte) {
	var f rosterFrame
	if err := json.Unmarshal(body, &f); err != nil {
		c.malformed(p, wire.Roster)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.First {
		p.gathering = nil
	}
	unfit := 0
	for _, b := range f.Backends {
		switch {
		case state.CheckBackendID(b.ID) != nil || len(b.ID)+len(b.URL) > maxRosterName:
			unfit++
		case len(p.gathering) < maxRoster:
			p.gathering = append(p.gathering, b)
		}
	}
	if unfit > 0 {
		c.malformed(p, wire.Roster)
	}
	if f.Last {
		p.roster, p.gathering, p.heard = p.gathering, nil, true
		p.settings = f.Settings
		p.ready.Store(f.Ready)
		c.fleetDue()
	}
}

// followDrains does here what operators did elsewhere, once each. What this
// node's own operator does comes back as the same and changes nothing.
func (c *Cluster) followDrains(followed map[string]bool) {
	present := make(map[string]bool)
	for _, b := range c.roster {
		present[b.ID] = true
	}
	maps.DeleteFunc(followed, func(id string, _ bool) bool { return !present[id] })
	for id, on := range c.facts.drains() {
		if was, done := followed[id]; !present[id] || done && was == on {
			continue
		}
		followed[id] = on
		if err := c.cfg.Fleet.Drain(id, on); err != nil && c.routesTo(id) {
			c.log.Warn("a peer's drain is not followed", "backend", id, "drain", on, "error", err)
		}
	}
}

// routesTo is whether a backend is there now: it may have gone since the roster was
// made.
func (c *Cluster) routesTo(id string) bool {
	return slices.ContainsFunc(c.cfg.Fleet.Backends(), func(b Backend) bool { return b.ID == id })
}

// followRosters adds and removes learned backends, and looks at those whose health
// a peer sees otherwise.
func (c *Cluster) followRosters() {
	given, health := c.readRosters()
	own := make(map[string]bool)
	for _, b := range c.cfg.Fleet.Backends() { // what operators changed has been followed since the roster was told
		own[b.ID] = true
		if b.Learned && !c.isGiven(b.ID) {
			c.remove(b.ID)
		}
		if h := health[b.ID]; h != "" && h != b.Health && c.hinted[b.ID] != h {
			c.cfg.Fleet.Probe(b.ID)
		}
	}
	c.hinted = health
	if !c.cfg.LearnBackends {
		return
	}
	for id, b := range given {
		if !own[id] && !c.facts.removed(id) {
			c.add(b)
		}
	}
	if len(given) > 0 {
		c.followed.Store(true)
		nudge(c.warmed)
	}
}

// readRosters is which backends the peers were given, and how they see them. It
// also brings up to date who was given what: what a peer that is gone was given
// stays so, since its going says nothing about backends.
func (c *Cluster) readRosters() (given map[string]Backend, health map[string]string) {
	given, health = make(map[string]Backend), make(map[string]string)
	for _, p := range c.peers.all() {
		p.mu.Lock()
		roster, heard := p.roster, p.heard
		p.mu.Unlock()
		if !heard {
			continue
		}
		names := make(map[string]bool)
		for _, b := range roster {
			if health[b.ID] = b.Health; !b.Learned {
				given[b.ID], names[b.ID] = b, true
			}
		}
		if c.givenBy[p.name] = names; len(c.givenBy) > maxGivers {
			maps.DeleteFunc(c.givenBy, func(name string, _ map[string]bool) bool { return c.peers.get(name) == nil })
		}
	}
	return given, health
}

// maxGivers bounds the nodes whose lists are remembered.
const maxGivers = 256

// isGiven is whether some peer was given the backend, as far as is known.
func (c *Cluster) isGiven(id string) bool {
	for _, names := range c.givenBy {
		if names[id] {
			return true
		}
	}
	return false
}

func (c *Cluster) add(b Backend) {
	if c.refusedBackends[b.ID] == b.URL {
		return
	}
	b.Learned, b.Health = true, ""
	if err := c.cfg.Fleet.Add(b); err != nil {
		c.refusedBackends[b.ID] = b.URL
		c.log.Warn("a peer's backend is not taken over", "backend", b.ID, "url", b.URL, "error", err)
	}
}

func (c *Cluster) remove(id string) {
	if err := c.cfg.Fleet.Remove(id); err != nil {
		c.log.Warn("a learned backend is not removed", "backend", id, "error", err)
	}
}
