package proxy

import (
	"net/http"

	"kvca/proxy/backend"
)

// clusterStatus is the answer of /cluster/status; its names are part of the
// interface that scripts rely on.
type clusterStatus struct {
	Node         string           `json:"node"`
	Cluster      string           `json:"cluster"`
	Version      string           `json:"version"`
	Ready        bool             `json:"ready"`
	InFlight     int64            `json:"in_flight"`
	Members      []Member         `json:"members"`
	Backends     []backendStatus  `json:"backends"`
	BlockMap     blockMapStatus   `json:"block_map"`
	Index        indexStatus      `json:"index"`
	Reservations reservations     `json:"reservations"`
	Divergence   map[string]int64 `json:"divergence"`
	Limits       []LimitUse       `json:"limits,omitempty"`
	Queue        queueStatus      `json:"queue"`
}

// LimitUse is how much of a tenant's limits is used. Its names are part of the
// interface that scripts rely on.
type LimitUse struct {
	Tenant string `json:"tenant"`
	// Model is set where the limits are those of one model.
	Model string `json:"model,omitempty"`
	// Owner is the node that hands the limit out.
	Owner string `json:"owner"`
	// Limit is 0 where there is none; Here is what this node uses, Cluster what all
	// do, where this node is the owner.
	Limit   Rates  `json:"limit"`
	Here    Rates  `json:"here"`
	Cluster *Rates `json:"cluster,omitempty"`
	// Degraded is whether this node did without the owner within the last second.
	Degraded bool `json:"degraded,omitempty"`
}

// Rates are a limit, or what is used of one.
type Rates struct {
	RequestsPerSecond float64 `json:"requests_per_second"`
	TokensPerSecond   float64 `json:"tokens_per_second"`
	Concurrent        int     `json:"concurrent"`
}

type queueStatus struct {
	Waiting int64 `json:"waiting"`
}

// mostLimits bounds the tenants that status lists.
const mostLimits = 1000

type backendStatus struct {
	backend.Status
	Owner string `json:"owner"`
	// Generation is the cluster's: restarts that any node has seen.
	Generation  uint64 `json:"generation"`
	NovelBlocks int64  `json:"novel_blocks"`
	// Peers is the backend's health as each peer sees it.
	Peers map[string]string `json:"peers"`
}

type blockMapStatus struct {
	Blocks    int    `json:"blocks"`
	Locations int    `json:"locations"`
	Tentative int    `json:"tentative"`
	Bytes     int64  `json:"bytes"`
	MaxBytes  int64  `json:"max_bytes"`
	Expired   uint64 `json:"expired"`
	Evicted   uint64 `json:"evicted"`
}

type reservations struct {
	Held     int    `json:"held"`     // by this node
	Granted  uint64 `json:"granted"`  // by this node as owner, to itself and its peers
	Refused  uint64 `json:"refused"`  // to this node, by owners
	Degraded uint64 `json:"degraded"` // of this node's, decided without an owner
}

func (a *admin) status(w http.ResponseWriter, _ *http.Request) {
	cfg, ready, cluster := a.Proxy.config(), a.ready(), a.Cluster.Status()
	counters := a.Ledger.Counters()
	if len(cluster.Members) > 0 {
		cluster.Members[0].Ready = ready // a node that drains is not, whatever the cluster holds
	}
	if cluster.Divergence == nil {
		cluster.Divergence = map[string]int64{}
	}
	writeJSON(w, http.StatusOK, clusterStatus{
		Node: cfg.Node, Cluster: cfg.Cluster, Version: cfg.Version, Ready: ready, InFlight: a.Proxy.InFlight(),
		Members:  cluster.Members,
		Backends: a.backendStatus(&cluster),
		BlockMap: a.blockMapStatus(),
		Index:    a.indexStatus(),
		Reservations: reservations{
			Held: a.Ledger.Held(), Granted: counters.Granted + counters.ForPeers, Refused: cluster.Refused, Degraded: cluster.Degraded,
		},
		Divergence: cluster.Divergence,
		Limits:     a.Cluster.Limits(mostLimits),
		Queue:      queueStatus{Waiting: a.Proxy.waiting()},
	})
}

func (a *admin) backendStatus(cluster *ClusterStatus) []backendStatus {
	blockSize := int64(a.Proxy.router.BlockSize())
	novelOf := make(map[string]int64)
	for _, b := range a.pool.All() {
		novelOf[b.ID] = a.Ledger.Load(b.Slot).Novel
	}
	list := []backendStatus{}
	for _, s := range a.pool.Status() {
		b := backendStatus{
			Status: s, Owner: cluster.Owner(s.ID), Generation: s.Generation,
			NovelBlocks: (novelOf[s.ID] + blockSize - 1) / blockSize, Peers: cluster.Health[s.ID],
		}
		if cluster.Generation != nil {
			b.Generation = cluster.Generation(s.ID)
		}
		if b.Peers == nil {
			b.Peers = map[string]string{}
		}
		list = append(list, b)
	}
	return list
}

func (a *admin) blockMapStatus() blockMapStatus {
	s := a.Map.Stats()
	return blockMapStatus{
		Blocks: s.Blocks, Locations: s.Locations, Tentative: s.Tentative,
		Bytes: s.Bytes, MaxBytes: s.MaxBytes, Expired: s.Expired, Evicted: s.Evicted + s.MirrorEvicted,
	}
}
