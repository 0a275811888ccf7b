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
	Members      []memberStatus   `json:"members"`
	Backends     []backendStatus  `json:"backends"`
	BlockMap     blockMapStatus   `json:"block_map"`
	Reservations reservations     `json:"reservations"`
	Divergence   map[string]int64 `json:"divergence"`
}

type memberStatus struct {
	Name    string  `json:"name"`
	Address string  `json:"address"`
	State   string  `json:"state"`
	Ready   bool    `json:"ready"`
	Boot    string  `json:"boot"`
	LagMS   float64 `json:"lag_ms"`
	Dirty   bool    `json:"dirty"`
}

type backendStatus struct {
	backend.Status
	Owner       string `json:"owner"`
	NovelBlocks int64  `json:"novel_blocks"`
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
	Held     int    `json:"held"`
	Granted  uint64 `json:"granted"`
	Refused  uint64 `json:"refused"`
	Degraded uint64 `json:"degraded"`
}

func (a *admin) status(w http.ResponseWriter, _ *http.Request) {
	cfg, ready := &a.Proxy.cfg, a.ready()
	counters := a.Ledger.Counters()
	writeJSON(w, http.StatusOK, clusterStatus{
		Node: cfg.Node, Cluster: cfg.Cluster, Version: cfg.Version, Ready: ready, InFlight: a.Proxy.InFlight(),
		Members:      []memberStatus{{Name: cfg.Node, Address: a.Address, State: "alive", Ready: ready, Boot: a.Boot}},
		Backends:     a.backendStatus(),
		BlockMap:     a.blockMapStatus(),
		Reservations: reservations{Held: a.Ledger.Held(), Granted: counters.Granted},
		Divergence:   map[string]int64{},
	})
}

func (a *admin) backendStatus() []backendStatus {
	blockSize := int64(a.Proxy.router.BlockSize())
	novelOf := make(map[string]int64)
	for _, b := range a.pool.All() {
		novelOf[b.ID] = a.Ledger.Load(b.Slot).Novel
	}
	list := []backendStatus{}
	for _, s := range a.pool.Status() {
		novel := novelOf[s.ID]
		list = append(list, backendStatus{Status: s, Owner: a.Proxy.cfg.Node, NovelBlocks: (novel + blockSize - 1) / blockSize})
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
