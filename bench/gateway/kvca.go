package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Status is what is used of kvca's /cluster/status.
type Status struct {
	Node         string    `json:"node"`
	Ready        bool      `json:"ready"`
	Members      []Member  `json:"members"`
	Backends     []Backend `json:"backends"`
	BlockMap     BlockMap  `json:"block_map"`
	Reservations struct {
		Held     int64 `json:"held"`
		Granted  int64 `json:"granted"`
		Refused  int64 `json:"refused"`
		Degraded int64 `json:"degraded"`
	} `json:"reservations"`
	// Limits are the limits in use, and which node hands each out.
	Limits []struct {
		Tenant string `json:"tenant"`
		Owner  string `json:"owner"`
	} `json:"limits"`
	// Divergence is how many entries of the block map a peer has other than this
	// node, by its name.
	Divergence map[string]int64 `json:"divergence"`
}

// Member is a node as this node sees it.
type Member struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Ready bool   `json:"ready"`
	Dirty bool   `json:"dirty"`
	Link  string `json:"link"`
}

// Backend is a backend as this node sees it; its load is that of all nodes.
type Backend struct {
	ID          string `json:"id"`
	Health      string `json:"health"`
	Owner       string `json:"owner"`
	Active      int64  `json:"active"`
	NovelBlocks int64  `json:"novel_blocks"`
}

// BlockMap is how much a node knows.
type BlockMap struct {
	Blocks    int64 `json:"blocks"`
	Locations int64 `json:"locations"`
	Tentative int64 `json:"tentative"`
	Bytes     int64 `json:"bytes"`
	MaxBytes  int64 `json:"max_bytes"`
	Expired   int64 `json:"expired"`
	Evicted   int64 `json:"evicted"`
}

// Load says what load is left, "" for none.
func (s *Status) Load() string {
	var left []string
	for _, b := range s.Backends {
		if b.Active != 0 || b.NovelBlocks != 0 {
			left = append(left, fmt.Sprintf("%s: %d active, %d novel blocks", b.ID, b.Active, b.NovelBlocks))
		}
	}
	if s.Reservations.Held != 0 {
		left = append(left, fmt.Sprintf("%d reservations held", s.Reservations.Held))
	}
	if s.BlockMap.Tentative != 0 {
		left = append(left, fmt.Sprintf("%d tentative locations", s.BlockMap.Tentative))
	}
	return strings.Join(left, "; ")
}

// Status asks kvca how it is.
func (r *Running) Status(ctx context.Context) (*Status, error) {
	text, err := r.get(ctx, "/cluster/status")
	if err != nil {
		return nil, err
	}
	s := &Status{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	return s, nil
}

// Goroutines asks kvca for the profile of its goroutines and their number.
func (r *Running) Goroutines(ctx context.Context) (n int, profile string, err error) {
	text, err := r.get(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return 0, "", err
	}
	n, err = goroutines(text)
	return n, string(text), err
}

// goroutines reads the first line of a goroutine profile.
func goroutines(profile []byte) (n int, err error) {
	if _, err := fmt.Fscanf(bytes.NewReader(profile), "goroutine profile: total %d", &n); err != nil {
		return 0, fmt.Errorf("read goroutine profile: %w", err)
	}
	return n, nil
}

// AwaitIdle waits until kvca reports no load and returns the last status; what
// load is left then is the caller's to judge.
func (r *Running) AwaitIdle(ctx context.Context, limit time.Duration) (*Status, error) {
	deadline := time.Now().Add(limit)
	for {
		s, err := r.Status(ctx)
		if err != nil || s.Load() == "" || time.Now().After(deadline) {
			return s, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// clusterFlags give a node that has cluster ports ephemeral ones. A build without
// a cluster knows no such flags.
func clusterFlags(ctx context.Context, program string, gossip, link int) []string {
	help, err := exec.CommandContext(ctx, program, "serve", "--help").CombinedOutput()
	if err != nil {
		return nil
	}
	var flags []string
	for name, port := range map[string]int{"--gossip": gossip, "--link": link} {
		if bytes.Contains(help, []byte(name+" ")) {
			flags = append(flags, name, local(port))
		}
	}
	return flags
}
