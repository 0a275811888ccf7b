package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/prometheus/client_golang/prometheus"

	"kvca/cluster/agent"
	"kvca/cluster/link"
	"kvca/cluster/member"
	"kvca/state/blockmap"
	"kvca/state/chain"
	"kvca/state/enginehash"
	"kvca/state/kvindex"
	"kvca/state/ledger"
)

// Config says who this node is and what it shares.
type Config struct {
	// Node is this node's name: stable over restarts, since ownership follows it,
	// and unique in the cluster.
	Node string
	// Cluster is the cluster's name; nodes of another one are refused.
	Cluster string
	// Boot tells this run of the process from earlier ones under the same name.
	Boot uint64
	// BlockSize and HashKey must be the same on all nodes, or their block hashes
	// mean nothing to each other.
	BlockSize int
	HashKey   chain.Key
	// MixedBlockSizes lets nodes with another block size in, for a rolling change:
	// loads are shared with them, locations are not.
	MixedBlockSizes bool

	// Gossip is where membership listens, HOST:PORT, TCP and UDP.
	Gossip string
	// Link accepts the other nodes' connections; Run closes it.
	Link net.Listener
	// Advertise is the host by which others reach this node; empty for that of
	// the listeners.
	Advertise string
	// Join are addresses of other nodes' gossip, HOST:PORT; a name may resolve to
	// many. None for a node that waits to be joined.
	Join []string
	// Keys encrypt the gossip, nil for none; TLS protects the links, nil for none.
	Keys member.KeySource
	TLS  link.TLS

	// LearnBackends adds the backends that other nodes were given.
	LearnBackends bool
	// OwnerBudget is how long a request waits for an owner that was found hanging,
	// until this node decides alone; others get eight times as long, and all at least
	// two round trips, up to a quarter of a second. The longer, the more a hung owner
	// delays requests. Default 3 ms.
	OwnerBudget time.Duration
	// NewsEvery is the least time between two writes of news to a peer: what was
	// learned, and loads. Each write wakes a process; the longer they wait, the older
	// are the figures that others decide by. Default 5 ms.
	NewsEvery time.Duration
	// Settings are values that should be the same on all nodes and need not be, by
	// the names of their flags: where they differ, status says so.
	Settings map[string]string
	// Client and Admin are this node's addresses for people.
	Client, Admin string

	Ledger *ledger.Ledger
	Map    *blockmap.Map
	Fleet  Fleet
	// Queue is where requests wait for room; nil: nowhere.
	Queue Queue
	// Index is the precise index that is shared; nil: none is.
	Index *kvindex.Index
	// Named tells of a backend whose events carry no tokens how its engine hashes,
	// and its block size; nil for others, and where no backend is of that kind. It
	// must say the same on all nodes.
	Named func(backend string) (*enginehash.Chain, int)
	// Agents are the agents that may describe backends here, asked for whenever one
	// says something; nil: none may.
	Agents func() agent.Credentials

	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// Now is the router's clock: the monotonic time since the node's epoch.
	Now func() time.Duration
	// Rand gives random numbers; tests seed it.
	Rand func() uint64

	// Transport and Dial replace sockets in tests.
	Transport memberlist.Transport
	Dial      func(ctx context.Context, addr string) (net.Conn, error)
}

// Defaults of Config.
const (
	defaultBudget = 3 * time.Millisecond
	defaultNews   = 5 * time.Millisecond
)

func (c *Config) validate() error {
	faults := []error{c.validateCore()}
	if c.Link == nil {
		faults = append(faults, errors.New("cluster: Link is nil, want an open listener"))
	}
	if c.Fleet == nil {
		faults = append(faults, errors.New("cluster: Fleet is nil, want the pool of backends"))
	}
	return errors.Join(faults...)
}

// validateCore sets defaults and checks what every node needs, a Stepped one too.
func (c *Config) validateCore() error {
	if c.OwnerBudget == 0 {
		c.OwnerBudget = defaultBudget
	}
	if c.NewsEvery == 0 {
		c.NewsEvery = defaultNews
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	want(c.Node != "", "cluster: Node is empty, want a name that no other node has")
	want(c.Cluster != "", "cluster: Cluster is empty, want the cluster's name")
	want(c.Boot != 0, "cluster: Boot is 0, want a number that tells runs of the process apart")
	want(c.Ledger != nil && c.Map != nil, "cluster: Ledger and Map must be given")
	want(c.Now != nil && c.Rand != nil, "cluster: Now and Rand must be given")
	want(c.OwnerBudget > 0 && c.OwnerBudget <= time.Second, "cluster: OwnerBudget is %v, want more than 0, at most 1s", c.OwnerBudget)
	want(c.NewsEvery > 0 && c.NewsEvery <= time.Second, "cluster: NewsEvery is %v, want more than 0, at most 1s", c.NewsEvery)
	return errors.Join(faults...)
}

// Fleet is the pool of backends as the cluster sees it. All but Backends is
// called from one goroutine of the cluster.
type Fleet interface {
	// Backends are all that this node routes to, learned ones included. It may
	// be called from any goroutine.
	Backends() []Backend
	// Add takes a backend that a peer was given (learned), or that an operator gave
	// to all nodes.
	Add(b Backend) error
	// Drop ends a backend, whoever gave it: an operator removed it.
	Drop(id string) error
	// Remove ends a learned backend that no peer names any more.
	Remove(id string) error
	// Drain follows what an operator did at a peer.
	Drain(id string, on bool) error
	// Probe is a hint: a peer sees another health than this node.
	Probe(id string)
}

// Backend is what nodes tell each other about a backend.
type Backend struct {
	ID          string   `json:"id"`
	URL         string   `json:"url"`
	Models      []string `json:"models,omitempty"`
	Weight      float64  `json:"weight,omitempty"`
	CacheTokens int      `json:"cache_tokens,omitempty"`
	Zone        string   `json:"zone,omitempty"`
	// Events is where the engine's KV cache events are, for a backend that an
	// operator gave to all nodes; of others each node reads what it was told to.
	Events string `json:"events,omitempty"`
	// Health is as the telling node sees it.
	Health string `json:"health,omitempty"`
	// Learned is whether the telling node has it from others.
	Learned bool `json:"learned,omitempty"`
}
