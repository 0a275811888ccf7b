package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"kvca/cluster"
	"kvca/cluster/agent"
	"kvca/cluster/link"
	"kvca/cluster/member"
	"kvca/cluster/secret"
	"kvca/proxy"
	"kvca/proxy/backend"
	"kvca/proxy/tenant"
	"kvca/router"
)

// peers is the node's part in its cluster. Its sockets are open from the
// beginning: it has to be run, or closed.
type peers struct {
	*cluster.Cluster
	fleet *fleet
	link  string // where its links are accepted
	// watches look at files of secrets until their context ends.
	watches []func(context.Context)
	ran     atomic.Bool
}

// openPeers makes the node's part in its cluster, if it is to have one.
func (n *node) openPeers() error {
	c := &n.settings.cluster
	if c.gossip == "" {
		return nil
	}
	p := &peers{fleet: new(fleet)}
	keys, tls, err := p.openSecrets(n)
	if err != nil {
		return err
	}
	agents, err := p.openAgents(n)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.link)
	if err != nil {
		return taken("link", err)
	}
	p.link = l.Addr().String()
	s := n.settings
	p.Cluster, err = cluster.New(cluster.Config{
		Node: s.proxy.Node, Cluster: s.proxy.Cluster, Boot: n.boot, BlockSize: s.router.BlockSize, HashKey: s.proxy.Key,
		Gossip: c.gossip, Link: l, Advertise: c.advertise, Join: c.join,
		MixedBlockSizes: c.mixedBlockSizes, LearnBackends: s.learns(), OwnerBudget: c.ownerBudget,
		Settings: s.shared(),
		Client:   n.shown("listen"), Admin: n.shown("admin"),
		Keys: keys, TLS: tls, Ledger: n.loads, Map: n.locations, Index: n.index, Named: s.index.hashesOf, Agents: agents, Fleet: p.fleet, Queue: s.proxy.Queue,
		Logger: n.log, Registerer: n.metrics, Now: s.router.Now, Rand: s.router.Rand,
	})
	if err != nil {
		l.Close()
		return taken("gossip", err)
	}
	n.peers = p
	return nil
}

// shared are the settings that should be the same on all nodes of a cluster, and
// need not be: where they differ, status says so.
func (s *settings) shared() map[string]string {
	var models []string
	for model, policy := range s.router.Policies {
		models = append(models, model+"="+policy)
	}
	slices.Sort(models)
	fields := sha256.Sum256([]byte(s.fieldsText()))
	return map[string]string{
		"policy":          s.router.Policy,
		"model-policy":    strings.Join(models, ","),
		"ttl":             s.blocks.TTL.String(),
		"max-index-bytes": strconv.FormatInt(s.blocks.MaxBytes, 10),
		"cbr-in/cbr-out":  hex.EncodeToString(fields[:4]),
	}
}

// openSecrets reads what the cluster's ports are protected by. Where there are
// certificates they are for the links, and the secret for gossip.
func (p *peers) openSecrets(n *node) (keys member.KeySource, tls link.TLS, err error) {
	c := &n.settings.cluster
	if c.secretFile != "" {
		source, err := secret.Open(c.secretFile, n.log)
		if err != nil {
			return nil, nil, fmt.Errorf("--cluster-secret-file: %w", err)
		}
		keys, tls = source, source
		p.watches = append(p.watches, func(ctx context.Context) { source.Run(ctx, nil) })
	}
	if c.certFile != "" {
		certs, err := secret.Certificates(c.certFile, c.keyFile, c.caFile, n.log)
		if err != nil {
			return nil, nil, fmt.Errorf("--cluster-cert: %w", err)
		}
		tls = certs
		p.watches = append(p.watches, certs.Run)
	}
	return keys, tls, nil
}

// openAgents reads the agents that may describe backends here; nil for none.
func (p *peers) openAgents(n *node) (func() agent.Credentials, error) {
	file := n.settings.cluster.agentsFile
	if file == "" {
		return nil, nil
	}
	var now atomic.Pointer[agent.Credentials]
	watch, err := secret.Follow(file, n.log, func(content []byte) error {
		c, err := agent.ReadCredentials(bytes.NewReader(content))
		if err == nil {
			now.Store(&c)
			n.log.Info("agents that may describe backends", "agents", c.Names())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("--agents-file: %w", err)
	}
	p.watches = append(p.watches, watch)
	return func() agent.Credentials { return *now.Load() }, nil
}

// taken explains an address of the cluster that can't be opened. Who ran two
// nodes on one host before there were such ports has to be told of them.
func taken(flag string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) { // memberlist gives the text alone
		return fmt.Errorf("open --%s: %w: want --gossip and --link of its own for each node of a host, or --gossip off", flag, err)
	}
	return fmt.Errorf("open --%s: %w", flag, err)
}

// run takes part in the cluster until ctx ends.
func (p *peers) run(ctx context.Context) error {
	if p.ran.Swap(true) {
		return nil // closed before its turn came
	}
	var work sync.WaitGroup
	defer work.Wait()
	for _, watch := range p.watches {
		work.Go(func() { watch(ctx) })
	}
	if err := p.Run(ctx); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// close gives back what a node that was not run has opened.
func (p *peers) close() {
	if p.ran.Swap(true) {
		return
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.Run(over) // it ends at once, with nothing to tell
}

// leave says goodbye, once nothing is held here any more.
func (p *peers) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveGrace)
	defer cancel()
	p.Leave(ctx)
}

// gossip is where peers find the node, off for one that has none.
func (n *node) gossip() string {
	if n.peers == nil {
		return off
	}
	return n.peers.Cluster.Status().Members[0].Address
}

// Added has every node add a backend.
func (p *peers) Added(c backend.Config) error {
	return p.Cluster.Added(cluster.Backend{
		ID: c.ID, URL: c.URL, Models: c.Models, Weight: c.Weight, CacheTokens: c.CacheTokens, Zone: c.Zone, Events: c.Events,
	})
}

// Limits lists the limits that are in use.
func (p *peers) Limits(most int) []proxy.LimitUse {
	var list []proxy.LimitUse
	for _, l := range p.LimitStatus(most) {
		use := proxy.LimitUse{Owner: l.Owner, Limit: proxy.Rates(l.Limit), Here: proxy.Rates(l.Here), Degraded: l.Degraded}
		use.Tenant, use.Model, _ = strings.Cut(l.Key, "\n")
		if l.Cluster != nil {
			all := proxy.Rates(*l.Cluster)
			use.Cluster = &all
		}
		list = append(list, use)
	}
	return list
}

// Status is the cluster as the admin API shows it.
func (p *peers) Status() proxy.ClusterStatus {
	s := p.Cluster.Status()
	members := make([]proxy.Member, len(s.Members))
	for i, m := range s.Members {
		members[i] = proxy.Member{
			Name: m.Name, Address: m.Address, State: m.State, Ready: m.Ready, Boot: m.Boot, LagMS: m.LagMS, Dirty: m.Dirty,
			Link: m.Link, RTTMS: m.RTTMS, Owned: m.Owned, Held: m.HeldThere, Client: m.Client, Admin: m.Admin, Differs: m.Differs,
		}
	}
	return proxy.ClusterStatus{
		Members: members, Owner: s.Owners, Generation: s.Generation, Health: s.Health,
		Refused: s.Refused, Degraded: s.Degraded, Divergence: s.Divergence,
	}
}

// quotas hold the limits of tenants, over all nodes where there are several.
func (n *node) quotas() tenant.Quotas {
	if n.peers == nil {
		return tenant.NewLocal(n.settings.router.Now)
	}
	return n.peers.Cluster
}

func (n *node) routerLoads() router.Loads {
	if n.peers == nil {
		return router.LocalLoads(n.loads, n.settings.proxy.Node)
	}
	return n.peers.Loads()
}

func (n *node) routerLocations() router.Locations {
	if n.peers == nil {
		return n.locations
	}
	return n.peers.Locations()
}

// openPool makes the pool, which tells the router what it finds, and the cluster
// where there is one.
func (n *node) openPool() (*backend.Pool, error) {
	if n.peers == nil {
		return backend.NewPool(n.settings.pool, ownSlots{n.router, n.reader})
	}
	n.settings.pool.OnChange = n.peers.FleetChanged
	pool, err := backend.NewPool(n.settings.pool, slots{n.router, n.peers.Cluster, n.reader})
	n.peers.fleet.pool = pool
	return pool, err
}
