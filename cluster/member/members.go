package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// Members is this node's membership.
type Members struct {
	config  Config
	meta    []byte // config.Meta encoded
	self    string // the address others reach
	log     *slog.Logger
	metrics *metrics
	list    *memberlist.Memberlist
	keys    *keys
	queue   *memberlist.TransmitLimitedQueue
	joiner  *joiner
	said    once

	inbox  chan []byte   // messages, at most maxInbox
	notes  chan func()   // log lines, at most maxNotes; deliver runs them
	wake   chan struct{} // the roster or learned changed
	hurry  chan struct{} // the joiner has something to do soon
	joined chan struct{} // closed after the first round

	ends map[string]end // that are not logged yet; of deliver's goroutine

	leaving atomic.Bool
	left    chan struct{} // closed when the farewell is out

	// mu is a leaf: nothing else is called with it held.
	mu      sync.Mutex
	roster  roster
	table   Table
	learned map[factKey]struct{} // came by Learn, not yet delivered
	names   names
}

const (
	maxNotes  = 256
	tick      = time.Second     // keys and the roster are looked at
	leaveWait = 2 * time.Second // for the farewell when Run ends
)

// New opens the sockets and begins to answer others. Run must follow, if only with a
// context that is over: it is what closes them.
func New(c Config) (*Members, error) {
	c.defaults()
	at, err := c.check()
	if err != nil {
		return nil, fmt.Errorf("configure membership: %w", err)
	}
	m := &Members{
		config: c, log: c.Logger,
		inbox: make(chan []byte, maxInbox), notes: make(chan func(), maxNotes),
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		joined: make(chan struct{}), left: make(chan struct{}),
		learned: map[factKey]struct{}{}, ends: map[string]end{},
	}
	m.queue = &memberlist.TransmitLimitedQueue{RetransmitMult: retransmitFactMult, NumNodes: m.liveCount}
	if m.meta, err = c.Meta.encode(); err != nil {
		return nil, err
	}
	if m.keys, err = newKeys(c.Keys); err != nil {
		return nil, fmt.Errorf("gossip keys: %w", err)
	}
	joins, _ := c.joins()
	m.joiner = &joiner{m: m, joins: joins}
	m.metrics = newMetrics(c.Registerer, m)
	if err := m.open(at); err != nil {
		return nil, err
	}
	return m, nil
}

// open binds the sockets and creates memberlist on them.
func (m *Members) open(at addresses) error {
	logger := newGossipLog(m.log, m.gossiped)
	inner := m.config.Transport
	if inner == nil {
		t, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{at.bind.Addr().String()}, BindPort: int(at.bind.Port()), Logger: logger,
		})
		if err != nil {
			return fmt.Errorf("open gossip at %s: %w", at.bind, err)
		}
		inner = t
	}
	settings := m.settings()
	settings.Logger = logger
	if at.advertise.IsValid() {
		settings.AdvertiseAddr = at.advertise.Addr().String()
		settings.AdvertisePort = int(at.advertise.Port())
		if t, ok := inner.(*memberlist.NetTransport); ok && settings.AdvertisePort == 0 {
			settings.AdvertisePort = t.GetAutoBindPort()
		}
	}
	ip, port, err := inner.FinalAdvertiseAddr(settings.AdvertiseAddr, settings.AdvertisePort)
	if err != nil {
		return errors.Join(fmt.Errorf("advertised gossip address: %w", err), inner.Shutdown())
	}
	m.self = net.JoinHostPort(ip.String(), strconv.Itoa(port))
	g := newGate(inner, m.config.Cluster, m.keys != nil, m)
	settings.Transport = g
	if m.list, err = memberlist.Create(settings); err != nil {
		return errors.Join(fmt.Errorf("start gossip: %w", err), g.Shutdown())
	}
	return nil
}

// retransmitMult scales how often a node gossips one message: memberlist's own at its
// default, which leaves about one delivery in a hundred out (comparing states mends
// that); facts more often, since they are few and small and only the link mends them:
// one in a hundred thousand is left out.
const (
	retransmitMult     = 4
	retransmitFactMult = 10
)

// settings are memberlist's: a crash is known in two to four seconds, and a name can
// move to another address five seconds after that.
func (m *Members) settings() *memberlist.Config {
	h := hooks{m}
	s := memberlist.DefaultLANConfig()
	s.Name = m.config.Name
	s.Label, s.SkipInboundLabelCheck = m.config.Cluster, true // the gate checks
	s.EnableCompression = false                               // packets are filled before they are compressed
	s.ProbeInterval, s.ProbeTimeout = 500*time.Millisecond, 200*time.Millisecond
	s.SuspicionMult = 3
	s.SuspicionMaxTimeoutMult = 2 // with few nodes there may be none to confirm
	s.AwarenessMaxMultiplier = 4
	s.RetransmitMult = retransmitMult
	s.DeadNodeReclaimTime = 5 * time.Second
	s.PushPullInterval = 15 * time.Second
	s.TCPTimeout = 2 * time.Second
	s.Delegate, s.Events, s.Alive, s.Merge, s.Conflict, s.Ping = h, h, h, h, h, h
	if m.keys != nil {
		s.Keyring = m.keys.ring
	}
	return s
}

// Run joins and delivers until ctx ends; then it says farewell, if Leave did not, and
// closes all. It is called once.
func (m *Members) Run(ctx context.Context) {
	joining, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { m.joiner.run(joining) })
	m.deliver(ctx)
	stop()
	_ = m.Leave(leaveWait)
	if err := m.list.Shutdown(); err != nil {
		m.log.Warn("close gossip", "error", err)
	}
	wait.Wait() // closing the streams has cut short what the joiner waited for
	m.flushNotes()
}

// deliver calls OnChange and OnFact until ctx ends.
func (m *Members) deliver(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case b := <-m.inbox:
			m.receive(b)
		case note := <-m.notes:
			note()
		case <-m.wake:
			m.deliverNews()
		case <-ticker.C:
			m.housekeep()
		}
	}
}

func (m *Members) deliverNews() {
	m.mu.Lock()
	changed := m.roster.changed
	m.roster.changed = false
	live := m.roster.list(alive)
	m.mu.Unlock()
	if changed {
		m.config.OnChange(live)
	}
	for _, f := range m.takeLearned() {
		m.deliverFact(f)
	}
}

// housekeep rotates keys, forgets who is long gone, and logs who was lost.
func (m *Members) housekeep() {
	m.endsTold(func(_ string, e end) bool { return time.Since(e.at) >= tick/2 })
	m.mu.Lock()
	m.roster.expire(time.Now())
	m.mu.Unlock()
	changed, err := m.keys.rotate()
	if err != nil && m.said.first("rotate: "+err.Error(), time.Now()) {
		m.log.Error("gossip keys not changed", "error", err)
	}
	if changed {
		m.metrics.rotations.Inc()
		m.log.Info("gossip keys changed", "keys", len(m.keys.held))
	}
}

func (m *Members) flushNotes() {
	for {
		select {
		case note := <-m.notes:
			note()
		default:
			m.endsTold(func(string, end) bool { return true })
			return
		}
	}
}

// Leave tells the others that this node goes for good, and waits until that is out,
// for timeout at most. Membership answers on until Run ends.
func (m *Members) Leave(timeout time.Duration) error {
	if !m.leaving.CompareAndSwap(false, true) {
		select {
		case <-m.left:
			return nil
		case <-time.After(timeout):
			return errors.New("leave: the farewell is still not out")
		}
	}
	defer close(m.left)
	m.Tell(m.farewell())
	if err := m.list.Leave(timeout); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// Members are all known nodes, this one included, by name.
func (m *Members) Members() []Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roster.list(everyone)
}

// Joined is closed when the first round of join attempts is over, whatever came of it.
func (m *Members) Joined() <-chan struct{} { return m.joined }

// Address is where others reach this node's gossip, "ip:port".
func (m *Members) Address() string { return m.self }

func (m *Members) liveCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roster.live
}

func (m *Members) count(s State) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roster.count(s)
}

// whereabouts gives the addresses of the live, this node included, and of the lost.
func (m *Members) whereabouts() (live, lost []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	live = append(live, m.self)
	for _, o := range m.roster.list(alive) {
		live = append(live, o.Address)
	}
	for _, o := range m.roster.list(missing) {
		lost = append(lost, o.Address)
	}
	return live, lost
}

// displaced tells whether others hold this node's name for another address.
func (m *Members) displaced() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.names.displaced.IsZero() && time.Since(m.names.displaced) < displacedFor
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}
