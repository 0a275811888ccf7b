package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvca/cluster/simnet"
	"kvca/state"
	"kvca/state/blockmap"
	"kvca/state/chain"
	"kvca/state/ledger"
	"kvca/state/ring"
	"kvca/state/virtualtime"
)

// The harness runs real nodes (membership, links, ledgers, block maps) in virtual
// time over a simulated network. Routing is reduced to orders and chains.

const (
	gossipPort = 7946
	linkPort   = 7947
	testTTL    = 10 * time.Minute
)

// world is a cluster under test and what surrounds it.
type world struct {
	t     *testing.T
	net   *simnet.Network
	rng   *rand.Rand
	nodes []*testNode
	log   *slog.Logger
	epoch time.Time
	boot  uint64
	ids   uint64
}

// testNode is one node over all runs of its process.
type testNode struct {
	w     *world
	name  string
	host  *simnet.Host
	c     *Cluster
	l     *ledger.Ledger
	m     *blockmap.Map
	loads *Loads
	locs  *Locations
	fleet *testFleet
	stop  context.CancelFunc
	done  chan struct{}
	alive bool
	held  []ledger.ID
	edit  func(*Config)
}

// testFleet is a pool with nothing behind it.
type testFleet struct {
	mu      sync.Mutex
	n       *testNode
	list    []Backend
	drained map[string]bool
	probed  map[string]int
	refuse  func(id string) error // nil: a drain succeeds
	next    state.Slot
	slots   map[string]state.Slot
}

func (f *testFleet) Backends() []Backend {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Backend(nil), f.list...)
}

func (f *testFleet) Add(b Backend) error {
	f.mu.Lock()
	s := f.next
	f.next++
	f.slots[b.ID] = s
	f.list = append(f.list, b)
	f.mu.Unlock()
	f.n.c.Open(s, b.ID)
	return nil
}

func (f *testFleet) Remove(id string) error {
	f.mu.Lock()
	s := f.slots[id]
	delete(f.slots, id)
	for i := range f.list {
		if f.list[i].ID == id {
			f.list = append(f.list[:i:i], f.list[i+1:]...)
			break
		}
	}
	f.mu.Unlock()
	f.n.c.Close(s)
	return nil
}

func (f *testFleet) Drop(id string) error { return f.Remove(id) }

func (f *testFleet) Drain(id string, on bool) error {
	f.mu.Lock()
	refuse := f.refuse
	f.mu.Unlock()
	if refuse != nil {
		return refuse(id)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drained[id] = on
	return nil
}

func (f *testFleet) Probe(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probed[id]++
}

func (f *testFleet) slot(id string) state.Slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[id]
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, net: simnet.New(seed), rng: rand.New(rand.NewPCG(seed, 4)), log: slog.New(slog.DiscardHandler), epoch: time.Now()}
	return w
}

func (w *world) close() {
	for _, n := range w.nodes {
		if n.alive {
			n.stop()
			<-n.done
		}
	}
	w.net.Close()
	w.nodes = nil
	time.Sleep(10 * time.Second) // memberlist leaves a probe behind that ends by time
}

// start runs count nodes in front of the backends b0, b1, ..., which each of them
// is given in another order, so that slots differ.
func (w *world) start(count, backends int, edit func(*Config)) {
	for i := range count {
		n := &testNode{w: w, name: fmt.Sprintf("n%d", i), edit: edit}
		n.host = w.net.Host(n.name)
		w.nodes = append(w.nodes, n)
		n.run(backends)
	}
}

func backendID(i int) string { return fmt.Sprintf("b%d", i) }

// run starts the node's process.
func (n *testNode) run(backends int) {
	w := n.w
	w.boot++
	m, err := blockmap.New(blockmap.Config{MaxBytes: 8 << 20, TTL: testTTL})
	if err != nil {
		w.t.Fatal(err)
	}
	link, err := n.host.Listen(linkPort)
	if err != nil {
		w.t.Fatal(err)
	}
	n.l, n.m = ledger.New(), m
	n.fleet = &testFleet{n: n, drained: map[string]bool{}, probed: map[string]int{}, slots: map[string]state.Slot{}}
	epoch := time.Now()
	cfg := Config{
		Node: n.name, Cluster: "test", Boot: w.boot, BlockSize: 512, HashKey: chain.DeriveKey("test"),
		Gossip: fmt.Sprintf("%s:%d", n.host.IP(), gossipPort), Link: link,
		Ledger: n.l, Map: m, Fleet: n.fleet, Logger: w.log,
		Now:  func() time.Duration { return time.Since(epoch) },
		Rand: rand.New(rand.NewPCG(w.boot, 5)).Uint64, Transport: n.host.Packet(gossipPort), Dial: n.host.Dial,
	}
	var mu sync.Mutex
	source := cfg.Rand
	cfg.Rand = func() uint64 { mu.Lock(); defer mu.Unlock(); return source() }
	for _, other := range w.nodes {
		if other != n {
			cfg.Join = append(cfg.Join, fmt.Sprintf("%s:%d", other.host.IP(), gossipPort))
		}
	}
	if n.edit != nil {
		n.edit(&cfg)
	}
	if n.c, err = New(cfg); err != nil {
		w.t.Fatal(err)
	}
	n.loads, n.locs = n.c.Loads(), n.c.Locations()
	ctx, cancel := context.WithCancel(context.Background())
	n.stop, n.done, n.alive = cancel, make(chan struct{}), true
	go func() {
		defer close(n.done)
		n.c.Run(ctx)
	}()
	for _, i := range rand.New(rand.NewPCG(w.boot, 6)).Perm(backends) {
		n.fleet.Add(Backend{ID: backendID(i), URL: "http://" + backendID(i), Health: "healthy"})
	}
}

// kill ends the process without a goodbye; what it held is lost to it.
func (n *testNode) kill() {
	n.host.Kill()
	n.stop()
	<-n.done
	n.alive, n.held = false, nil
}

func (n *testNode) restart(backends int) {
	n.host.Restart()
	n.run(backends)
}

// order is a request's, over all backends at the same cost but for one holder.
func (n *testNode) order(backends, holder int) *ledger.Order {
	n.w.ids++
	o := &ledger.Order{
		ID:          ledger.ID{n.w.ids, 0x6b766361},
		ActiveBytes: 512, LoadScale: 1, Tie: n.w.rng.Uint64(),
	}
	for i := range backends {
		c := ledger.Candidate{Slot: n.fleet.slot(backendID(i)), Slowness: 1, Novel: 4096, Cost: 16384}
		if i == holder {
			c.Novel, c.Cost = 512, 2048
		}
		o.Candidates = append(o.Candidates, c)
	}
	return o
}

// reserve books one request and returns the backend that it went to.
func (n *testNode) reserve(backends, holder int) (int, ledger.Grant) {
	o := n.order(backends, holder)
	g := n.loads.Reserve(context.Background(), o)
	n.held = append(n.held, o.ID)
	return g.Index, g
}

func (n *testNode) release(i int) {
	id := n.held[i]
	n.held[i] = n.held[len(n.held)-1]
	n.held = n.held[:len(n.held)-1]
	n.loads.Release(id)
}

// learn makes the node learn that a backend holds a chain.
func (n *testNode) learn(b int, hashes []uint64) {
	s := n.fleet.slot(backendID(b))
	n.locs.Learn(s, n.locs.Generation(s), hashes, n.c.cfg.Now())
}

// matched is how many leading blocks of a chain the node believes a backend holds.
func (n *testNode) matched(b int, hashes []uint64) int {
	var w blockmap.Walk
	n.locs.Walk(hashes, n.c.cfg.Now(), &w)
	return w.Matched(n.fleet.slot(backendID(b)))
}

func (w *world) living() (list []*testNode) {
	for _, n := range w.nodes {
		if n.alive {
			list = append(list, n)
		}
	}
	return list
}

// eventually waits, in virtual time, until ok says nothing; what it says at the
// end is the failure.
func (w *world) eventually(what string, limit time.Duration, ok func() string) time.Duration {
	w.t.Helper()
	began := time.Now()
	for {
		synctest.Wait()
		why := ok()
		if why == "" {
			return time.Since(began)
		}
		if time.Since(began) >= limit {
			w.t.Fatalf("%s: not within %v: %s", what, limit, why)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// together is empty when all living nodes are linked with each other, agree on who
// owns what, and are ready.
func (w *world) together() string {
	nodes := w.living()
	for _, n := range nodes {
		v := n.c.view.Load()
		if len(v.names) != len(nodes) {
			return fmt.Sprintf("%s sees %v of %d nodes", n.name, v.names, len(nodes))
		}
		for i, p := range v.peers {
			if i != v.self && (p == nil || p.connected() == nil) {
				return fmt.Sprintf("%s has no link to %s", n.name, v.names[i])
			}
		}
		if !n.c.Ready() {
			return n.name + " is not ready"
		}
	}
	return ""
}

// exact is empty when every owner's books hold what the holders hold, nothing
// twice, and nothing else.
func (w *world) exact() string {
	for _, o := range w.living() {
		for _, n := range w.living() {
			if n == o {
				continue
			}
			p := o.c.peers.get(n.name)
			if p == nil {
				return fmt.Sprintf("%s does not know %s", o.name, n.name)
			}
			books := idsOf(o.l.Holds(p.holder, nil, func(state.Slot) bool { return true }))
			v := n.c.view.Load()
			truth := idsOf(n.l.Holds(ledger.Self, nil, func(s state.Slot) bool { return v.names[v.owner(s)] == o.name }))
			if len(books) != len(truth) {
				return fmt.Sprintf("%s has %d holds of %s in its books, which holds %d there", o.name, len(books), n.name, len(truth))
			}
			for id := range truth {
				if !books[id] {
					return fmt.Sprintf("%s does not know of hold %v of %s", o.name, id, n.name)
				}
			}
		}
	}
	return ""
}

func idsOf(list []ledger.Held) map[ledger.ID]bool {
	set := make(map[ledger.ID]bool, len(list))
	for _, h := range list {
		set[h.ID] = true
	}
	return set
}

// loadsAgree is empty when every node sees the same load on every backend: that
// of all that is held.
func (w *world) loadsAgree(backends int) string {
	for i := range backends {
		var truth ledger.Load
		for _, n := range w.living() {
			own := n.l.Own(n.fleet.slot(backendID(i)))
			truth.Active += own.Active
			truth.Novel += own.Novel
		}
		for _, n := range w.living() {
			if got := n.loads.Load(n.fleet.slot(backendID(i))); got != truth {
				return fmt.Sprintf("%s sees %+v on %s, all hold %+v", n.name, got, backendID(i), truth)
			}
		}
	}
	return ""
}

// sameMaps is empty when all living nodes' block maps hold the same locations.
func (w *world) sameMaps() string {
	var first blockmap.Digest
	for i, n := range w.living() {
		var d blockmap.Digest
		n.m.Digest(&d, n.c.cfg.Now(), n.c.digestible)
		if i == 0 {
			first = d
			continue
		}
		if _, differ := d.Diff(&first); differ > 0 {
			return fmt.Sprintf("%s (%d locations) and %s (%d) differ in %d buckets", w.living()[0].name, w.living()[0].m.Stats().Locations, n.name, n.m.Stats().Locations, differ)
		}
	}
	return ""
}

// inBubble runs f in virtual time.
func inBubble(t *testing.T, seed uint64, f func(w *world)) {
	t.Helper()
	t.Logf("seed %d", seed)
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		defer w.close()
		f(w)
	})
}

// path makes a chain of n blocks that no other seed makes.
func path(seed uint64, n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = ring.Mix(seed<<20 + uint64(i))
	}
	return list
}
