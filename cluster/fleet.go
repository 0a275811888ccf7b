package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"kvca/cluster/member"
)

// Added tells the cluster that this node's operator added a backend while it ran:
// every node adds it. It fails, and tells nobody, if the backend takes more room than
// a fact has.
func (c *Cluster) Added(b Backend) error {
	b.Health, b.Learned = "", false
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("tell of backend %s: %w", b.ID, err)
	}
	if len(text) > member.MaxFactText {
		return fmt.Errorf("tell of backend %s: its URL and models take %d bytes, at most %d fit: add it on each node", b.ID, len(text), member.MaxFactText)
	}
	c.facts.tellFleet(b.ID, string(text), true)
	return nil
}

// Removed tells the cluster that this node's operator removed a backend: every node
// removes it, whoever gave it.
func (c *Cluster) Removed(id string) { c.facts.tellFleet(id, "", false) }

// change is the version of an operator's change that was followed.
type change struct {
	version uint64
	origin  string
}

// followChanges does here what operators added and removed elsewhere, once each:
// what is done here afterwards, by reload or by hand, stays.
func (c *Cluster) followChanges(followed map[string]change) {
	present := make(map[string]Backend)
	for _, b := range c.roster {
		present[b.ID] = b
	}
	changes := c.facts.changes()
	maps.DeleteFunc(followed, func(id string, _ change) bool { _, known := changes[id]; return !known })
	for id, fact := range changes {
		this := change{fact.Version, fact.Origin}
		if followed[id] == this {
			continue
		}
		followed[id] = this
		b, there := present[id]
		switch {
		case fact.Value == 0 && there:
			c.drop(b)
		case fact.Value != 0 && !there:
			c.bring(id, fact.Text)
		case fact.Value != 0 && differs(&b, fact.Text):
			c.drop(b)
			c.bring(id, fact.Text)
		}
	}
}

// differs is whether what an operator added is another backend than the one of that
// name which is here: then it was removed in between, and this node has missed it.
func differs(b *Backend, text string) bool {
	var added Backend
	return json.Unmarshal([]byte(text), &added) == nil && (added.URL != b.URL || added.Weight != b.Weight || added.Zone != b.Zone ||
		added.CacheTokens != b.CacheTokens || !slices.Equal(added.Models, b.Models))
}

func (c *Cluster) drop(b Backend) {
	c.log.Warn("an operator removed a backend, or replaced it, through the admin API of a node", "backend", b.ID, "url", b.URL)
	if err := c.cfg.Fleet.Drop(b.ID); err != nil {
		c.log.Warn("a backend that was removed at a peer is not removed here", "backend", b.ID, "error", err)
	}
}

func (c *Cluster) bring(id, text string) {
	var b Backend
	err := json.Unmarshal([]byte(text), &b)
	if err == nil && b.ID != id {
		err = fmt.Errorf("it calls itself %q", b.ID)
	}
	if err == nil {
		b.Health, b.Learned = "", false
		err = c.cfg.Fleet.Add(b)
	}
	if err != nil {
		c.log.Warn("a backend that was added at a peer is not added here", "backend", id, "error", err)
	}
}
