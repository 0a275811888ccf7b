package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"

	"kvca/cluster/link"
	"kvca/cluster/member"
	"kvca/cluster/wire"
)

// facts are the small, rare things that every node should know: generations of
// backends and what operators drain. They ride gossip, and are told whole over
// each new link, since gossip alone loses some.
type facts struct {
	c *Cluster

	mu      sync.Mutex
	known   map[string]uint64 // generation by backend
	drained map[string]member.Fact
	fleet   map[string]member.Fact // what operators added and removed
	digests map[string]uint64      // of settings, by node
}

func (f *facts) generation(id string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[id]
}

func (f *facts) tellGeneration(id string, generation uint64) {
	f.mu.Lock()
	f.known[id] = max(f.known[id], generation)
	f.mu.Unlock()
	f.tell(member.Fact{Kind: member.Generation, Subject: id, Version: generation, Value: generation, Origin: f.c.cfg.Node})
}

// tell gives a fact of this node's to gossip, which reaches those that are not
// linked, and to the links, which lose nothing.
func (f *facts) tell(fact member.Fact) {
	f.c.members.Tell(fact)
	one, err := member.AppendFact(nil, &fact)
	if err != nil {
		return // gossip has said why
	}
	b := wire.AppendBytes(nil, one)
	for _, p := range f.c.peers.all() {
		p.send(link.Deltas, wire.Facts, b)
	}
}

func (f *facts) tellDrain(id string, on bool) {
	f.mu.Lock()
	fact := member.Fact{Kind: member.Drain, Subject: id, Version: f.drained[id].Version + 1, Origin: f.c.cfg.Node}
	if on {
		fact.Value = 1
	}
	f.drained[id] = fact
	f.mu.Unlock()
	f.tell(fact)
}

// learn takes a fact that is new to this node. It runs on the membership's own
// goroutine.
func (f *facts) learn(fact member.Fact) {
	switch fact.Kind {
	case member.Generation:
		f.mu.Lock()
		f.known[fact.Subject] = max(f.known[fact.Subject], fact.Value)
		f.mu.Unlock()
		for _, e := range f.c.backends.all() {
			if e.id == fact.Subject {
				f.c.adopt(e, fact.Value)
			}
		}
	case member.Digest:
		f.mu.Lock()
		f.digests[fact.Subject] = fact.Value
		f.mu.Unlock()
	case member.Drain:
		f.mu.Lock()
		f.drained[fact.Subject] = fact
		f.mu.Unlock()
		f.c.fleetDue()
	case member.Fleet:
		f.mu.Lock()
		f.fleet[fact.Subject] = fact
		f.mu.Unlock()
		f.c.fleetDue()
	}
}

// tellFleet tells that this node's operator added a backend, or removed it. One
// that is added begins undrained.
func (f *facts) tellFleet(id, text string, added bool) {
	f.mu.Lock()
	fact := member.Fact{Kind: member.Fleet, Subject: id, Version: f.fleet[id].Version + 1, Origin: f.c.cfg.Node, Text: text}
	if added {
		fact.Value = 1
	}
	f.fleet[id] = fact
	drained := added && f.drained[id].Value != 0
	f.mu.Unlock()
	f.tell(fact)
	if drained {
		f.tellDrain(id, false)
	}
}

// changes are what operators have added and removed, by backend.
func (f *facts) changes() map[string]member.Fact {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.fleet)
}

// removed is whether an operator has removed a backend and nobody added it since.
func (f *facts) removed(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	fact, known := f.fleet[id]
	return known && fact.Value == 0
}

// frames sends all that is known, as Facts frames.
func (f *facts) frames(send func([]byte)) {
	var b []byte
	for _, fact := range f.c.members.Facts() {
		one, err := member.AppendFact(nil, &fact)
		if err != nil {
			continue // it would not be understood either
		}
		if b = wire.AppendBytes(b, one); len(b) >= pageBytes {
			send(b)
			b = nil
		}
	}
	if len(b) > 0 {
		send(b)
	}
}

func (f *facts) tellAll(p *peer) {
	f.frames(func(b []byte) { p.send(link.Deltas, wire.Facts, b) })
}

// hear takes a peer's facts, and returns how many can't be.
func (f *facts) hear(r *wire.Reader) (unread int) {
	var list []member.Fact
	for r.Rest() > 0 {
		fact, err := member.ParseFact(r.Bytes())
		switch {
		case r.Bad(): // the frame itself is
		case err != nil:
			unread++
		default:
			list = append(list, fact)
		}
	}
	if len(list) > 0 {
		f.c.members.Learn(list)
	}
	return unread
}

// drains are the backends that operators have drained or undrained somewhere.
func (f *facts) drains() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make(map[string]bool, len(f.drained))
	for id, fact := range f.drained {
		list[id] = fact.Value != 0
	}
	return list
}

// Drained tells the cluster that this node's operator drains a backend, or does
// no more.
func (c *Cluster) Drained(id string, on bool) { c.facts.tellDrain(id, on) }

// tellSettings tells a digest of this node's settings, by which others see that
// they differ, linked or not.
func (f *facts) tellSettings() {
	f.tell(member.Fact{Kind: member.Digest, Subject: f.c.cfg.Node, Version: f.c.cfg.Boot, Value: digestOf(f.c.cfg.Settings), Origin: f.c.cfg.Node})
}

// digestOf is the same for the same settings.
func digestOf(settings map[string]string) uint64 {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(h, "%q=%q\n", name, settings[name])
	}
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// settingsDiffer is whether a node's settings are known to be not as here.
func (f *facts) settingsDiffer(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	digest, ok := f.digests[node]
	return ok && digest != digestOf(f.c.cfg.Settings)
}
