package proxy

import "kvca/proxy/backend"

// Cluster is what the admin API needs of the cluster that the node is in. Its
// methods may be called from any goroutine.
type Cluster interface {
	// Ready is whether this node knows what its peers know, or has waited for it
	// long enough.
	Ready() bool
	// Drained tells the peers that the operator drained a backend here, or ended
	// the drain.
	Drained(id string, on bool)
	// Added has the peers add a backend that the operator added here, Removed has
	// them remove one.
	Added(c backend.Config) error
	Removed(id string)
	// Limits lists the limits that are in use, at most so many.
	Limits(most int) []LimitUse
	// Status is the cluster as this node sees it.
	Status() ClusterStatus
}

// ClusterStatus is the cluster as one node sees it.
type ClusterStatus struct {
	// Members are all known nodes, this one first.
	Members []Member
	// Owner names the node that alone may reserve on a backend.
	Owner func(id string) string
	// Generation counts how often a backend's cache was found empty, by any node.
	Generation func(id string) uint64
	// Health is what the peers see: by backend, then by node.
	Health map[string]map[string]string
	// Refused counts reservations that an owner answered with fresh figures
	// instead, Degraded those that were decided without an owner.
	Refused, Degraded uint64
	// Divergence is, by peer, in how many entries the block maps differed when
	// they were last compared.
	Divergence map[string]int64
}

// Member is one node of the cluster. Its names are part of the interface that
// scripts rely on.
type Member struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// State is alive, suspect, left or dead.
	State string `json:"state"`
	Ready bool   `json:"ready"`
	// Boot changes with each start of the node's process.
	Boot string `json:"boot"`
	// LagMS is how long the last location that was learned here took until the node
	// had it too.
	LagMS float64 `json:"lag_ms"`
	// Dirty is whether the node has missed news of ours and is being repaired.
	Dirty bool `json:"dirty"`
	// Link is up or down, or self for this node.
	Link  string  `json:"link"`
	RTTMS float64 `json:"rtt_ms"`
	// Owned is how many backends the node owns, Held how many reservations it has
	// on those that this node owns; of this node, how many it has at all.
	Owned int `json:"owned"`
	Held  int `json:"held"`
	// Client and Admin are where the node serves clients and its admin API.
	Client string `json:"client"`
	Admin  string `json:"admin"`
	// Differs names the settings in which the node differs from this one.
	Differs string `json:"differs"`
}

// alone is the cluster of a node that has no peers and opens no ports for any.
type alone struct {
	self Member
	pool *backend.Pool
}

func (a *alone) Ready() bool                { return true }
func (a *alone) Drained(string, bool)       {}
func (a *alone) Added(backend.Config) error { return nil }
func (a *alone) Limits(int) []LimitUse      { return nil }
func (a *alone) Removed(string)             {}

func (a *alone) Status() ClusterStatus {
	self := a.self
	self.Owned = len(a.pool.All())
	return ClusterStatus{Members: []Member{self}, Owner: func(string) string { return a.self.Name }}
}
