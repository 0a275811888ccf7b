package cluster

import (
	"errors"
	"fmt"

	"kvca/cluster/agent"
	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/ring"
)

// agentLink is one agent that is linked. Its frames come from the link's reader,
// which applies them itself: nothing else waits on that link.
type agentLink struct {
	name   string
	link   *link.Peer
	token  string
	offers map[wire.SourceID]*offer // guarded by index.mu
	// refused are offers that its credential does not list, until it does.
	refused map[wire.SourceID]refusedOffer // guarded by index.mu
	event   wire.Event                     // scratch of the reader
}

type refusedOffer struct {
	backend string
	said    wire.SourceOffer
}

// maxAgentOffers bounds what one agent may offer.
const maxAgentOffers = 4096

// Why what an agent says is dropped; a closed set.
const (
	dropNotRegistered = "not_registered" // its credential does not list the backend
	dropUnwanted      = "unwanted"       // this node reads the backend itself, or has it from another agent
	dropMalformed     = "malformed"
	dropTooMany       = "too_many" // offers
)

var agentDrops = []string{dropNotRegistered, dropUnwanted, dropMalformed, dropTooMany}

// agents are what the links of agents tell to.
type agents struct{ x *index }

// Up implements link.Receiver.
func (a agents) Up(p *link.Peer) {
	al := &agentLink{name: p.Name(), link: p, offers: make(map[wire.SourceID]*offer), refused: make(map[wire.SourceID]refusedOffer)}
	if token, ok := a.x.credentials().Token(al.name); ok {
		al.token = string(token)
	}
	a.x.mu.Lock()
	defer a.x.mu.Unlock()
	a.x.agents[p] = al
	a.x.c.metrics.index.agents.Set(float64(len(a.x.agents)))
}

// Down implements link.Receiver: what the agent described is forgotten.
func (a agents) Down(p *link.Peer, _ error) {
	a.x.mu.Lock()
	defer a.x.mu.Unlock()
	al := a.x.agents[p]
	delete(a.x.agents, p)
	for _, o := range al.offers {
		a.x.withdraw(o)
	}
	a.x.c.metrics.index.agents.Set(float64(len(a.x.agents)))
}

// Frame implements link.Receiver.
func (a agents) Frame(p *link.Peer, kind byte, body []byte) {
	a.x.mu.Lock()
	al := a.x.agents[p]
	a.x.mu.Unlock()
	r := wire.NewReader(body)
	switch kind {
	case wire.AgentOffer:
		a.x.hearAgentOffer(al, &r)
	case wire.AgentPart:
		a.x.hearAgentPart(al, &r)
	default:
		return // a later version's
	}
	if r.Bad() {
		a.x.dropped(al, dropMalformed, errors.New("a frame can't be read"))
	}
}

// dropped counts what an agent said in vain, and says so once in a while.
func (x *index) dropped(al *agentLink, reason string, err error) {
	x.c.metrics.index.dropped.WithLabelValues(reason).Inc()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.say("agent "+al.name+" "+reason, "what an agent says is dropped", fmt.Errorf("agent %s: %w", al.name, err))
}

func (x *index) credentials() agent.Credentials { return x.c.cfg.Agents() }

func (x *index) hearAgentOffer(al *agentLink, r *wire.Reader) {
	backend, said := r.AgentOffer()
	if r.Bad() {
		return
	}
	switch {
	case !x.credentials().May(al.name, backend) || said.ID.Key != ring.Key(backend):
		x.refuse(al, backend, said)
		x.dropped(al, dropNotRegistered, fmt.Errorf("it describes backend %q, which its credential does not list: add it there, or take it from the agent", backend))
		return
	case x.tooMany(al, said.ID):
		x.dropped(al, dropTooMany, fmt.Errorf("it offers more than %d sources", maxAgentOffers))
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	o := al.offers[said.ID]
	if said.Gone {
		if o != nil {
			delete(al.offers, said.ID)
			x.withdraw(o)
		}
		return
	}
	x.admit(al, backend, &said)
}

// admit takes an offer that the agent's credential lists. The caller holds mu.
func (x *index) admit(al *agentLink, backend string, said *wire.SourceOffer) {
	delete(al.refused, said.ID)
	o := al.offers[said.ID]
	if o == nil {
		x.births++
		o = &offer{place: x.place(said.ID), agent: al, born: x.births, model: x.modelOf(backend)}
		al.offers[said.ID] = o
		o.place.offers = append(o.place.offers, o)
	}
	x.hearSaid(o, said)
}

// refuse keeps an offer for when the credential lists its backend: the agent says it
// once.
func (x *index) refuse(al *agentLink, backend string, said wire.SourceOffer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case said.Gone || said.ID.Key != ring.Key(backend):
		delete(al.refused, said.ID)
	case len(al.offers)+len(al.refused) < maxAgentOffers:
		al.refused[said.ID] = refusedOffer{backend, said}
	}
}

func (x *index) tooMany(al *agentLink, id wire.SourceID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return al.offers[id] == nil && len(al.offers) >= maxAgentOffers
}

// modelOf is what a backend serves, for people.
func (x *index) modelOf(backend string) string {
	if x.c.cfg.Fleet == nil {
		return ""
	}
	for _, b := range x.c.cfg.Fleet.Backends() {
		if b.ID == backend && len(b.Models) > 0 {
			return b.Models[0]
		}
	}
	return ""
}

func (x *index) hearAgentPart(al *agentLink, r *wire.Reader) {
	part := r.Part()
	if r.Bad() {
		return
	}
	x.mu.Lock()
	o := al.offers[part.ID]
	unwanted := o != nil && o != o.place.chosen
	if unwanted {
		o.unwant = true
	}
	x.mu.Unlock()
	switch {
	case o == nil:
		x.dropped(al, dropNotRegistered, errors.New("it describes a backend that it may not describe, or has not offered"))
		return
	case unwanted:
		x.dropped(al, dropUnwanted, errors.New("it describes a backend that is read here already, or that this node does not know"))
		return
	}
	if x.take(o, &part, func() bool { return x.replay(o.feed, al, r) }) {
		x.mu.Lock()
		o.showLive(o.live)
		x.mu.Unlock()
	}
}

// replay feeds a source what the engine said; false where that can't be read.
func (x *index) replay(f *Feed, al *agentLink, r *wire.Reader) bool {
	for r.Rest() > 0 {
		if r.Event(&al.event); r.Bad() {
			return false
		}
		if s := &al.event.Stored; al.event.Removed {
			f.Remove(s.Hashes, s.Tier)
		} else {
			f.Store(s) //nolint:errcheck // the source counts what it can't take
		}
	}
	return true
}

// checkAgents ends the links of agents whose credential was taken away, and their
// offers of backends that it does not list any more. The caller holds mu.
func (x *index) checkAgents() {
	if len(x.agents) == 0 {
		return
	}
	known := x.credentials()
	for p, al := range x.agents {
		if token, ok := known.Token(al.name); !ok || string(token) != al.token {
			p.Close(errors.New("the credential is not valid any more"))
			continue
		}
		for id, o := range al.offers {
			if e := x.c.backends.of(id.Key); e != nil && !known.May(al.name, e.id) {
				delete(al.offers, id)
				al.refused[id] = refusedOffer{e.id, wire.SourceOffer{ID: id, Live: o.live, Problem: o.problem}}
				x.withdraw(o)
			}
		}
		for _, was := range al.refused {
			if known.May(al.name, was.backend) {
				x.admit(al, was.backend, &was.said)
			}
		}
	}
}
