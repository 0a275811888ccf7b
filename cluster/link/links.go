package link

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// maxStrangers bounds links of nodes that membership does not know: far fewer than
// the nodes that a cluster has room for.
const maxStrangers = 16

// Links are this node's connections with its peers.
type Links struct {
	c    Config
	name string
	m    *metrics
	said *onceLog

	wg sync.WaitGroup // all goroutines but Run's own

	mu      sync.Mutex
	ctx     context.Context // Run's; nil before Run
	closed  bool
	targets map[string]*target
	links   map[string]*Peer // the one that counts, by name; from admission until it is down
	agents  map[*Peer]bool
}

// target is who is to be linked with, and who dials there.
type target struct {
	Target
	cancel context.CancelFunc // of the dialler; nil where the other side dials
}

// New checks the configuration; Run starts.
func New(c Config) (*Links, error) {
	c.setDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Links{
		c: c, name: c.Self().Node,
		m: newMetrics(c.Registerer), said: newOnceLog(c.Logger),
		targets: map[string]*target{}, links: map[string]*Peer{}, agents: map[*Peer]bool{},
	}, nil
}

// Run accepts and dials until ctx ends; it returns when all links are down and
// all goroutines have ended.
func (l *Links) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.ctx = ctx
	for _, t := range l.targets {
		l.startDialler(t)
	}
	l.wg.Go(func() { l.accept(ctx) })
	l.mu.Unlock()

	<-ctx.Done()
	l.c.Listener.Close()
	l.mu.Lock()
	l.closed = true
	for _, p := range l.links {
		p.end(endedf(byShutdown, "%s is stopping", l.name))
	}
	for p := range l.agents {
		p.end(endedf(byShutdown, "%s is stopping", l.name))
	}
	l.mu.Unlock()
	l.wg.Wait()
}

// SetPeers says who is to be linked with; this node itself may be among them.
// Links of those who are no more in it, or whose process is another now, are
// closed. It does not wait.
func (l *Links) SetPeers(targets []Target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := make(map[string]Target, len(targets))
	for _, t := range targets {
		if t.Name != l.name {
			next[t.Name] = t
		}
	}
	for name, t := range l.targets {
		if next[name] != t.Target {
			l.removeTarget(t)
		}
	}
	for name, t := range next {
		if l.targets[name] == nil {
			l.addTarget(t)
		}
	}
	for _, p := range l.links {
		l.confirm(p)
	}
	for name := range l.m.peers {
		l.forget(name)
	}
}

func (l *Links) addTarget(to Target) {
	t := &target{Target: to}
	l.targets[to.Name] = t
	l.startDialler(t)
}

func (l *Links) removeTarget(t *target) {
	delete(l.targets, t.Name)
	if t.cancel != nil {
		t.cancel()
	}
}

// startDialler starts dialling where this is the side that does. Holds mu.
func (l *Links) startDialler(t *target) {
	if l.ctx == nil || l.closed || l.name > t.Name {
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	t.cancel = cancel
	l.wg.Go(func() {
		defer cancel()
		l.dial(ctx, t.Target)
	})
}

// confirm compares a link with what membership says. Holds mu.
func (l *Links) confirm(p *Peer) {
	t := l.targets[p.Name()]
	if t != nil && (t.Boot == 0 || t.Boot == p.Boot()) {
		p.confirmed.Store(true)
		return
	}
	if !p.confirmed.Load() {
		return // membership may lag; the keeper waits for it
	}
	if t == nil {
		p.end(endedf(byNotMember, "%q is no member any more", p.Name()))
		return
	}
	p.end(endedf(byReplaced, "%q has restarted", p.Name()))
}

// objection is what speaks against a link before both sides have agreed.
func (l *Links) objection(p *Peer) *refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.objectionLocked(p)
}

func (l *Links) objectionLocked(p *Peer) *refusal {
	if l.closed {
		return &refusal{code: refusedClosing, text: fmt.Sprintf("%s is stopping", l.name)}
	}
	if old := l.links[p.Name()]; old != nil {
		if !l.replaces(p, old) {
			return &refusal{code: refusedDuplicate, text: fmt.Sprintf("%s and %s are linked already", l.name, p.Name())}
		}
		return nil
	}
	if l.targets[p.Name()] == nil && l.strangers() >= maxStrangers {
		return &refusal{code: refusedCrowded, text: fmt.Sprintf("%d links of nodes that are no members", maxStrangers)}
	}
	return nil
}

func (l *Links) strangers() (n int) {
	for name := range l.links {
		if l.targets[name] == nil {
			n++
		}
	}
	return n
}

// replaces says which of two links of one node is to be kept: of one process the
// one that the lower name dialled, which both sides see alike, else the newer one.
func (l *Links) replaces(p, old *Peer) bool {
	proper := func(p *Peer) bool { return p.dialled == (l.name < p.Name()) }
	return p.Boot() != old.Boot() || old.hasEnded() || proper(p) || !proper(old)
}

func (p *Peer) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// admit makes a link the one that counts and returns the one that it replaces.
func (l *Links) admit(p *Peer) (old *Peer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.objectionLocked(p); r != nil {
		return nil, r
	}
	old = l.links[p.Name()]
	l.links[p.Name()] = p
	p.m = l.m.peer(p.Name())
	l.confirm(p)
	return old, nil
}

func (l *Links) remove(p *Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.links[p.Name()] == p {
		delete(l.links, p.Name())
	}
	l.forget(p.Name())
}

// forget drops the metrics of a node that is neither linked nor to be. Holds mu.
func (l *Links) forget(name string) {
	if l.links[name] == nil && l.targets[name] == nil {
		l.m.forget(name)
	}
}

// serve runs a link from admission until it is down. The calling goroutine is its
// reader. It says how the link ended, or that it was not admitted.
func (l *Links) serve(p *Peer) error {
	old, err := l.admit(p)
	if err != nil {
		p.m = l.m.nobody
		p.farewell(ended(byReplaced, err))
		p.conn.Close()
		return err
	}
	if old != nil {
		old.end(endedf(byReplaced, "replaced by a newer connection"))
		<-old.down
	}
	defer close(p.down)
	defer l.remove(p)
	if p.hasEnded() { // replaced itself, while it waited
		p.farewell(p.ending)
		p.conn.Close()
		return p.ending
	}
	return p.run()
}

// run is the life of an admitted link.
func (p *Peer) run() error {
	l := p.l
	l.m.connected(p)
	l.logUp(p)
	p.live()
	l.m.closed(p)
	l.logDown(p)
	return p.ending
}

// live is a link from Up to Down.
func (p *Peer) live() {
	p.in.widen()
	p.in.read = func() { p.lastFrame.Store(p.since()) }
	p.in.read()
	p.lastSent.Store(p.since())
	p.receiver.Up(p)
	var wg sync.WaitGroup
	wg.Go(p.write)
	wg.Go(p.keep)
	p.end(p.read())
	wg.Wait()
	p.receiver.Down(p, p.ending)
}

func (l *Links) logUp(p *Peer) {
	if !p.confirmed.Load() && !l.said.first("stranger up", remoteHost(p.conn)) {
		return // names cost a stranger nothing
	}
	l.c.Logger.Info("peer linked", slog.String("peer", p.Name()),
		slog.Int("protocol", int(p.protocol)), slog.Bool("dialled", p.dialled))
}

func (l *Links) logDown(p *Peer) {
	if !p.confirmed.Load() && !l.said.first("stranger down", remoteHost(p.conn)) {
		return
	}
	level := slog.LevelWarn
	switch p.ending.reason {
	case byShutdown, byNotMember, byReplaced, byPeer:
		level = slog.LevelInfo
	case byGarbage:
		if !l.said.first("garbage", p.Name()) {
			return
		}
	}
	l.c.Logger.Log(context.Background(), level, "peer link down", slog.String("peer", p.Name()),
		slog.String("reason", string(p.ending.reason)), slog.String("error", p.ending.Error()))
}
