package cluster

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/member"
	"kvca/state/blockmap"
	"kvca/state/chain"
	"kvca/state/ledger"
)

// The versions of the protocol between nodes that this one speaks.
const (
	minProtocol = 1
	maxProtocol = 1
)

// readyAfter bounds how long a new node waits for what its peers know.
const readyAfter = 5 * time.Second

// Cluster is this node's part of the cluster. See the package's documentation.
type Cluster struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics

	members  membership
	links    linkage
	waiter   waiter
	peers    peers
	backends backends
	facts    facts
	outbox   outbox
	index    *index // nil: none is shared
	quotas   *quotas
	turns    *Turns

	// meeting is held where peers are met and forgotten: nobody is forgotten before
	// it is leased or live. It comes before viewMu.
	meeting sync.Mutex
	known   []member.Member // the live ones, as membership told last
	leftOut map[string]bool // those among them that no number is left for

	viewMu sync.Mutex // serialises revise; guards roles
	view   atomic.Pointer[view]
	live   atomic.Pointer[[]member.Member] // without this node

	linked    atomic.Int64 // links that are up
	count     struct{ refused, degraded atomic.Uint64 }
	scratches sync.Pool
	started   time.Duration
	ready     atomic.Bool
	followed  atomic.Bool // a peer's backends are known here

	stir         chan struct{} // something is to be told
	fleetChanged chan struct{}
	warmed       chan struct{} // a comparison has ended

	workers workers

	// What follows belongs to beat.
	digest     *blockmap.Digest
	compareDue time.Duration
	rounds     uint64

	// What follows belongs to pump.
	changedSubtotals []ledger.Subtotal

	// What follows belongs to tend.
	roster          []Backend
	rosterReady     bool
	hinted          map[string]string
	refusedBackends map[string]string
	// givenBy is which backends each peer was given, those of peers that are gone
	// included.
	givenBy map[string]map[string]bool
}

// New makes this node's part of a cluster; Run gives it life. Until then it is a
// cluster of one.
func New(cfg Config) (*Cluster, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := newCluster(cfg)
	if err := c.connect(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	c.registerState(cfg.Registerer)
	return c, nil
}

// newCluster makes a node that is not connected.
func newCluster(cfg Config) *Cluster {
	c := &Cluster{
		cfg: cfg, log: cfg.Logger, metrics: newMetrics(cfg.Registerer),
		waiter: newClockWaiter(), outbox: newOutbox(), scratches: newScratches(), digest: new(blockmap.Digest),
		stir: make(chan struct{}, 1), fleetChanged: make(chan struct{}, 1), warmed: make(chan struct{}, 1),
		hinted: make(map[string]string), refusedBackends: make(map[string]string),
		givenBy: make(map[string]map[string]bool),
		started: cfg.Now(),
	}
	c.facts = facts{c: c, known: make(map[string]uint64), drained: make(map[string]member.Fact), fleet: make(map[string]member.Fact), digests: make(map[string]uint64)}
	c.index = newIndex(c)
	c.quotas = newQuotas(c)
	c.turns = &Turns{c: c}
	c.live.Store(new([]member.Member))
	c.revise()
	return c
}

// connect makes the membership and the links.
func (c *Cluster) connect() (err error) {
	cfg := &c.cfg
	hello := c.hello()
	links := link.Config{
		Self: c.hello, Listener: cfg.Link, Dial: cfg.Dial, TLS: cfg.TLS, Handler: handler{c},
		Logger: cfg.Logger, Registerer: cfg.Registerer, Lease: lease,
	}
	if c.index != nil && cfg.Agents != nil {
		links.Agents = agents{c.index}
		links.Token = func(name string) ([]byte, bool) { return cfg.Agents().Token(name) }
	}
	c.links, err = link.New(links)
	if err != nil {
		return err
	}
	c.members, err = member.New(member.Config{
		Name: cfg.Node, Cluster: cfg.Cluster, Bind: cfg.Gossip, Advertise: cfg.Advertise, Join: cfg.Join,
		Meta: member.Meta{
			Link: c.linkAddress(), Boot: cfg.Boot, MinProtocol: minProtocol, MaxProtocol: maxProtocol,
			Cluster: cfg.Cluster, BlockSize: cfg.BlockSize, KeyCheck: hello.KeyCheck, Client: cfg.Client, Admin: cfg.Admin,
		},
		Mixed: cfg.MixedBlockSizes, Keys: cfg.Keys, Transport: cfg.Transport, Logger: cfg.Logger, Registerer: cfg.Registerer,
		OnChange: c.membersChanged, OnFact: c.facts.learn,
	})
	return err
}

// linkAddress is where others reach this node's links.
func (c *Cluster) linkAddress() string {
	address := c.cfg.Link.Addr().String()
	if c.cfg.Advertise == "" {
		return address
	}
	if _, port, err := net.SplitHostPort(address); err == nil {
		return net.JoinHostPort(c.cfg.Advertise, port)
	}
	return address
}

func (c *Cluster) hello() link.Hello {
	return link.Hello{
		Cluster: c.cfg.Cluster, Node: c.cfg.Node, Boot: c.cfg.Boot, MinProtocol: minProtocol, MaxProtocol: maxProtocol,
		BlockSize: c.cfg.BlockSize, KeyCheck: keyCheck(c.cfg.HashKey),
	}
}

// keyCheck is equal for equal keys and tells nothing else about them.
func keyCheck(key chain.Key) uint64 {
	var secret [16]byte
	binary.LittleEndian.PutUint64(secret[:], key.K0)
	binary.LittleEndian.PutUint64(secret[8:], key.K1)
	mac := hmac.New(sha256.New, secret[:])
	mac.Write([]byte("kvca hash key check"))
	return binary.LittleEndian.Uint64(mac.Sum(nil))
}

// Loads is where the router books work.
func (c *Cluster) Loads() *Loads { return &Loads{c} }

// Locations is where the router learns into.
func (c *Cluster) Locations() *Locations { return &Locations{c.cfg.Map, c} }

// Run takes part in the cluster until ctx ends, and returns when nothing of it is
// left.
func (c *Cluster) Run(ctx context.Context) error {
	c.workers.begin(ctx)
	c.facts.tellSettings()
	var work sync.WaitGroup
	for _, part := range []func(context.Context){c.members.Run, c.links.Run, c.beat, c.pump, c.tend, c.warm} {
		work.Go(func() { part(ctx) })
	}
	work.Wait()
	c.workers.Wait()
	return nil
}

// Leave tells the others that this node goes, so that its slice is owned again at
// once. It comes before the end of Run's context.
func (c *Cluster) Leave(ctx context.Context) {
	limit := time.Second
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end)
	}
	if err := c.members.Leave(limit); err != nil {
		c.log.Info("nobody took the goodbye: who is there notices within seconds", "error", err)
	}
}

// membersChanged takes the live members as membership sees them. It runs on the
// membership's own goroutine.
func (c *Cluster) membersChanged(live []member.Member) {
	c.meeting.Lock()
	defer c.meeting.Unlock()
	c.known = live
	c.takeIn()
}

// takeIn makes peers of the known members, as far as there are numbers for their
// holds. The caller holds meeting.
func (c *Cluster) takeIn() {
	others := make([]member.Member, 0, len(c.known))
	targets := make([]link.Target, 0, len(c.known))
	leftOut := make(map[string]bool)
	for _, m := range c.known {
		if m.Name == c.cfg.Node {
			continue
		}
		if c.peers.meet(m.Name) == nil {
			if leftOut[m.Name] = true; !c.leftOut[m.Name] {
				c.log.Error("a node is not taken in: the cluster has as many as can be", "node", m.Name, "most", ledger.MaxHolders)
			}
			continue
		}
		others = append(others, m)
		targets = append(targets, link.Target{Name: m.Name, Boot: m.Meta.Boot, Addr: m.Meta.Link})
	}
	c.leftOut = leftOut
	c.live.Store(&others)
	c.links.SetPeers(targets)
	c.revise()
	nudge(c.warmed)
}

func (c *Cluster) isLive(name string) bool {
	return slices.ContainsFunc(*c.live.Load(), func(m member.Member) bool { return m.Name == name })
}

// liveNames are the names of all live nodes, this one's included.
func (c *Cluster) liveNames() []string {
	names := []string{c.cfg.Node}
	for _, m := range *c.live.Load() {
		names = append(names, m.Name)
	}
	return names
}

// beatEvery is the time between two looks at what is due, and the epoch of the
// ledger's notes.
const beatEvery = 50 * time.Millisecond

// beat does what is due by time, until ctx ends.
func (c *Cluster) beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.doBeat(n, c.cfg.Now())
	}
}

// doBeat does what is due at the beat of that number.
func (c *Cluster) doBeat(n uint64, now time.Duration) {
	c.cfg.Ledger.NextEpoch()
	for _, p := range c.peers.all() {
		c.tendPeer(p, now)
	}
	c.mature(now)
	c.quotas.beat(n, now)
	if n%4 == 0 {
		c.compare(now)
		c.forgetGone()
		c.index.tend(now)
	}
	if n%uint64(agesEvery/beatEvery) == 0 {
		c.tellAges(now)
	}
}

func (c *Cluster) tendPeer(p *peer, now time.Duration) {
	if p.leaseOver(now) {
		c.cfg.Ledger.Drop(p.holder)
		c.quotas.drop(p)
		c.metrics.leases.Inc()
		if c.isLive(p.name) {
			c.log.Warn("a node is silent: its load is given back", "peer", p.name, "lease", lease)
		}
		if l := p.connected(); l != nil {
			l.Close(fmt.Errorf("silent for %v", lease))
		}
	}
	if p.connected() == nil {
		return
	}
	c.acknowledge(p)
	c.remind(p)
	p.mu.Lock()
	due := now >= p.heldDue
	if p.subtotals {
		nudge(c.stir)
	}
	p.mu.Unlock()
	if due {
		c.tellHeldSet(p, now)
		c.quotas.tellHeld(p, now)
	}
}

// warm waits until this node knows what its peers know: one of them has been
// compared with, there is nobody to ask, or readyAfter is over.
func (c *Cluster) warm(ctx context.Context) {
	limit := time.NewTimer(readyAfter)
	defer limit.Stop()
	joined := c.members.Joined()
	for {
		select {
		case <-ctx.Done():
			return
		case <-limit.C:
			c.becomeReady("no peer has told all it knows in time")
			return
		case <-joined:
			joined = nil
		case <-c.warmed:
		}
		if joined == nil && c.isWarm() {
			c.becomeReady("a peer has told all it knows")
			return
		}
	}
}

func (c *Cluster) isWarm() bool {
	live := c.others() // what OnChange has told may be a moment behind
	if len(live) == 0 {
		return true
	}
	if c.cfg.LearnBackends && !c.followed.Load() {
		return false
	}
	for _, m := range live {
		p := c.peers.get(m.Name)
		if p == nil {
			continue
		}
		if l := p.connected(); p.pull.complete() || l != nil && !c.shares(l) {
			return true
		}
	}
	return false
}

// others are the live members without this node, as membership has them now.
func (c *Cluster) others() (list []member.Member) {
	for _, m := range c.members.Members() {
		if m.Name != c.cfg.Node && (m.State == member.Alive || m.State == member.Suspect) {
			list = append(list, m)
		}
	}
	return list
}

func (c *Cluster) becomeReady(why string) {
	c.ready.Store(true)
	c.fleetDue()
	if len(c.others()) == 0 {
		c.log.Info("serving without peers: none is known", "after", (c.cfg.Now() - c.started).Round(time.Millisecond))
		return
	}
	c.log.Info("in the cluster", "members", len(c.others())+1, "locations", c.cfg.Map.Stats().Locations, "because", why, "after", (c.cfg.Now() - c.started).Round(time.Millisecond))
}

// Ready is whether this node knows what its peers know, as far as it could.
func (c *Cluster) Ready() bool { return c.ready.Load() }
