package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kvca/cluster/member"
	"kvca/state/ledger"
	"kvca/state/ring"
)

// Status is this node's view of the cluster.
type Status struct {
	// Members are all nodes that are known, this one first.
	Members []Member
	// Owners tells the owner of a backend.
	Owners func(id string) string
	// Generation tells a backend's generation.
	Generation func(id string) uint64
	// Health is how peers see backends: by backend and node.
	Health map[string]map[string]string
	// Granted are reservations of this node and of others that it decided as
	// owner; Refused and Degraded are this node's.
	Granted, Refused, Degraded uint64
	// Divergence is how many locations each peer had at the last comparison
	// that this node lacked.
	Divergence map[string]int64
	// Sources are those of the precise index, by backend and rank.
	Sources []SourceStatus
}

// Member is one node as this one sees it.
type Member struct {
	Name    string
	Address string // of its gossip
	State   string // alive, suspect, left or dead
	Ready   bool
	Boot    string
	LagMS   float64 // from learning to its having applied, the last one
	Dirty   bool    // it lacks something, until it has compared
	Link    string  // self, up or down
	RTTMS   float64
	Owned   int // backends
	// HeldThere are its reservations on backends of this node.
	HeldThere     int
	Client, Admin string
	// Differs names what of its configuration differs without harm.
	Differs string
}

// Status describes the cluster as this node sees it now.
func (c *Cluster) Status() Status {
	v := c.view.Load()
	owned := make(map[string]int)
	for _, e := range c.backends.all() {
		owned[v.names[v.owner(e.slot)]]++
	}
	s := Status{
		Owners: v.ownerName, Generation: c.generationOf,
		Health: make(map[string]map[string]string), Divergence: make(map[string]int64),
	}
	s.Members = append(s.Members, c.self(owned[c.cfg.Node]))
	for _, m := range c.members.Members() {
		if m.Name != c.cfg.Node {
			s.Members = append(s.Members, c.memberStatus(&m, owned[m.Name]))
		}
	}
	for _, p := range c.peers.all() {
		c.addPeer(&s, p)
	}
	s.Sources = c.index.status()
	s.Granted, s.Refused, s.Degraded = c.cfg.Ledger.Counters().Granted, c.count.refused.Load(), c.count.degraded.Load()
	return s
}

// ownerName is the name of the owner of a backend.
func (v *view) ownerName(id string) string { return v.ring.Owner(ring.Key(id)) }

func (c *Cluster) generationOf(id string) uint64 {
	if e := c.backends.of(ring.Key(id)); e != nil {
		return e.generation.Load()
	}
	return 0
}

func (c *Cluster) self(owned int) Member {
	return Member{
		Name: c.cfg.Node, Address: c.members.Address(), State: member.Alive.String(), Ready: c.Ready(), Boot: bootName(c.cfg.Boot),
		Link: "self", Owned: owned, HeldThere: c.cfg.Ledger.HeldBy(ledger.Self), Client: c.cfg.Client, Admin: c.cfg.Admin,
	}
}

// bootName is as logs have it.
func bootName(boot uint64) string { return strconv.FormatUint(boot, 10) }

func (c *Cluster) memberStatus(m *member.Member, owned int) Member {
	s := Member{
		Name: m.Name, Address: m.Address, State: m.State.String(), Boot: bootName(m.Meta.Boot),
		Link: "down", Owned: owned, Client: m.Meta.Client, Admin: m.Meta.Admin, Differs: c.differs(m),
	}
	p := c.peers.get(m.Name)
	if p == nil {
		return s
	}
	s.Dirty = p.out.dirty.Load()
	s.LagMS = float64(p.out.lag.Load()) / 1e6
	s.HeldThere = c.cfg.Ledger.HeldBy(p.holder)
	if l := p.connected(); l != nil {
		s.Link, s.RTTMS = "up", float64(l.RTT().Microseconds())/1e3
		s.Ready = p.ready.Load()
	}
	return s
}

// differs names what of a member's configuration is not as here.
func (c *Cluster) differs(m *member.Member) string {
	var list []string
	if m.Meta.BlockSize != c.cfg.BlockSize {
		list = append(list, fmt.Sprintf("block-size %d, here %d: locations are not shared", m.Meta.BlockSize, c.cfg.BlockSize))
	}
	if m.Meta.MaxProtocol != maxProtocol {
		list = append(list, fmt.Sprintf("protocol up to %d, here %d", m.Meta.MaxProtocol, maxProtocol))
	}
	switch settings := c.otherSettings(m.Name); {
	case len(settings) > 0:
		list = append(list, settings...)
	case c.facts.settingsDiffer(m.Name):
		list = append(list, "settings differ")
	}
	return strings.Join(list, "; ")
}

func (c *Cluster) otherSettings(name string) (list []string) {
	p := c.peers.get(name)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, flag := range slices.Sorted(maps.Keys(p.settings)) {
		if here, there := c.cfg.Settings[flag], p.settings[flag]; here != there {
			list = append(list, fmt.Sprintf("%s %s, here %s", flag, there, here))
		}
	}
	return list
}

func (c *Cluster) addPeer(s *Status, p *peer) {
	p.pull.mu.Lock()
	s.Divergence[p.name] = int64(p.pull.found)
	p.pull.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.roster {
		if s.Health[b.ID] == nil {
			s.Health[b.ID] = make(map[string]string)
		}
		s.Health[b.ID][p.name] = b.Health
	}
}
