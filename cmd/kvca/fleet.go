package main

import (
	"kvca/cluster"
	"kvca/proxy/backend"
	"kvca/proxy/engine/readers"
	"kvca/router"
)

// slots tells the router of backends, and the cluster of those that the router
// has given slots.
type slots struct {
	*router.Router
	cluster *cluster.Cluster
	read    *readers.Reader
}

// Add makes a backend known here, then to the peers.
func (s slots) Add(id string) (*router.Backend, error) {
	b, err := s.Router.Add(id)
	if err == nil {
		s.cluster.Open(b.Slot, id)
	}
	return b, err
}

// Remove ends what the peers say of the backend before its slot is free for
// another.
func (s slots) Remove(b *router.Backend) {
	s.cluster.Close(b.Slot)
	s.Router.Remove(b)
}

// Void begins a new generation everywhere, the local block map included.
func (s slots) Void(b *router.Backend) {
	s.cluster.Restarted(b.Slot)
	s.read.Void(b.ID)
}

// ownSlots tells the router of a node without peers, and who reads the events.
type ownSlots struct {
	*router.Router
	read *readers.Reader
}

// Void begins a new generation.
func (s ownSlots) Void(b *router.Backend) {
	s.Router.Void(b)
	s.read.Void(b.ID)
}

// fleet is the pool as the cluster sees it. Listing takes no lock that the pool
// holds while it calls the cluster.
type fleet struct{ pool *backend.Pool }

// Backends lists them all with their health as this node sees it.
func (f *fleet) Backends() []cluster.Backend {
	all := f.pool.All()
	list := make([]cluster.Backend, 0, len(all))
	for _, facts := range all {
		b := f.pool.Of(facts)
		if b == nil { // removed meanwhile
			continue
		}
		c := b.Config()
		list = append(list, cluster.Backend{
			ID: c.ID, URL: c.URL, Models: c.Models, Weight: c.Weight, CacheTokens: c.CacheTokens,
			Zone: c.Zone, Health: b.Health(), Learned: c.Learned,
		})
	}
	return list
}

// Add takes a backend over from a peer.
func (f *fleet) Add(b cluster.Backend) error {
	return f.pool.Add(backend.Config{
		ID: b.ID, URL: b.URL, Models: b.Models, Weight: b.Weight, CacheTokens: b.CacheTokens, Zone: b.Zone, Events: b.Events, Learned: b.Learned,
	})
}

// Drop ends a backend that an operator removed at a peer.
func (f *fleet) Drop(id string) error { return f.pool.Drop(id) }

// Remove ends a backend that no peer names any more.
func (f *fleet) Remove(id string) error { return f.pool.Forget(id) }

// Drain follows a peer's operator.
func (f *fleet) Drain(id string, on bool) error {
	if on {
		return f.pool.Drain(id)
	}
	return f.pool.Undrain(id)
}

// Probe looks at a backend whose health a peer sees otherwise.
func (f *fleet) Probe(id string) { f.pool.Probe(id) }
