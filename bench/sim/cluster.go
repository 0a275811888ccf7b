package sim

import (
	"context"
	"fmt"
	"time"

	"kvca/cluster"
	"kvca/cluster/link"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/chain"
	"kvca/state/ledger"
)

// When nodes notice each other's going and coming, as measured with processes: a
// killed node leaves the member list after two seconds, a started one is in it
// after a fifth of one, and takes requests when it is ready.
const (
	noticed = 2 * time.Second
	joining = 200 * time.Millisecond
	// readyAfter is how long a started node waits for what its peers know, and
	// readyLook the time between two looks.
	readyAfter = 5 * time.Second
	readyLook  = 50 * time.Millisecond
)

// clusterName is what the simulated nodes derive their hash key from.
const clusterName = "simulation"

// many is the product on many nodes: each a router, a ledger, a block map and a
// cluster.Stepped, with a network of the simulation between them.
type many struct {
	sim   *simulation
	net   *network
	tasks *tasks
	lives []*life // by node, nil while it is killed
	boots uint64
	alone int // decisions of nodes that were killed without an owner's word
}

func newMany(s *simulation) (*many, error) {
	m := &many{
		sim: s, tasks: &tasks{loop: &s.loop}, lives: make([]*life, s.cfg.Nodes),
		net: &network{loop: &s.loop, rng: s.chance(chanceNetwork), delay: s.cfg.Delay, loss: s.cfg.Loss, wires: make(map[[2]int]*wire)},
	}
	for i := range m.lives {
		l, err := m.newLife(i)
		if err != nil {
			return nil, err
		}
		m.lives[i] = l
	}
	m.meet()
	for i, a := range m.lives {
		for _, b := range m.lives[:i] {
			m.connect(a, b)
		}
	}
	s.loop.every(scrapeInterval, func() { m.each(func(l *life) { l.node.scrape(s.engines.servers) }) })
	s.loop.every(vacuumInterval, func() { m.each(func(l *life) { l.node.vacuum(s.loop.now) }) })
	return m, nil
}

// each is for every node that lives, in order.
func (m *many) each(do func(*life)) {
	for _, l := range m.lives {
		if l != nil {
			do(l)
		}
	}
}

// meet tells every node who lives.
func (m *many) meet() {
	m.each(func(l *life) {
		var others []link.Hello
		m.each(func(o *life) {
			if o != l {
				others = append(others, o.step.Hello())
			}
		})
		l.step.Meet(others)
		l.settle()
	})
}

func (m *many) connect(a, b *life) {
	a.step.Connect(b.step.Hello())
	b.step.Connect(a.step.Hello())
	a.settle()
	b.settle()
}

func (m *many) disconnect(a, b *life) {
	a.step.Disconnect(b.name)
	b.step.Disconnect(a.name)
	a.settle()
	b.settle()
}

func (m *many) route(j *job, answer decided) {
	l := m.lives[j.node]
	m.tasks.start(func() { answer(l.node.route(context.Background(), j)) })
	l.settle()
}

func (m *many) begin(j *job) {
	begin(j)
	m.settle(j)
}

func (m *many) end(j *job) {
	end(j)
	m.settle(j)
}

func (m *many) settle(j *job) {
	if l := m.lives[j.node]; l != nil {
		l.settle()
	}
}

// onAll does something on every node, which notice it by themselves.
func (m *many) onAll(do func(*life)) {
	m.each(func(l *life) {
		do(l)
		l.settle()
	})
}

func (m *many) lost(backend int) {
	m.onAll(func(l *life) { l.node.set(backend, router.Unhealthy) })
}

func (m *many) back(backend int) {
	m.onAll(func(l *life) {
		if b := l.node.members[backend]; b != nil {
			l.step.Restarted(b.Slot)
			b.SetStanding(router.Available)
			l.node.slowStart(&m.sim.loop, backend, m.sim.cfg.SlowStart)
		}
	})
}

func (m *many) removed(backend int) { m.onAll(func(l *life) { l.node.remove(backend) }) }

// added can't fail: there is a slot, since there was one before.
func (m *many) added(backend int) { m.onAll(func(l *life) { _ = l.node.add(backend) }) }

// killed ends a node's process. Its peers' connections to it break at once; that
// it is gone they notice later.
func (m *many) killed(number int) {
	dead := m.lives[number]
	m.lives[number] = nil
	m.alone += dead.step.Degraded()
	dead.end()
	m.each(func(l *life) {
		l.step.Disconnect(dead.name)
		l.settle()
	})
	m.sim.loop.after(noticed, m.meet)
}

// started begins another run of a killed node's process, which knows nothing.
func (m *many) started(number int, ready func()) {
	l, err := m.newLife(number)
	if err != nil {
		return // it can't fail: it is as the first time
	}
	began := m.sim.loop.now
	m.sim.loop.after(joining, func() {
		m.lives[number] = l
		m.meet()
		m.each(func(o *life) {
			if o != l {
				m.connect(l, o)
			}
		})
		m.sim.loop.after(readyLook, func() { m.awaitReady(l, began, ready) })
	})
}

func (m *many) awaitReady(l *life, began time.Duration, ready func()) {
	if l.over {
		return
	}
	if l.step.Warm() || m.sim.loop.now-began >= readyAfter {
		ready()
		return
	}
	m.sim.loop.after(readyLook, func() { m.awaitReady(l, began, ready) })
}

func (m *many) report(r *Result) {
	r.Degraded = m.alone
	m.each(func(l *life) { r.Degraded += l.step.Degraded() })
	if s := m.sim.loop.now.Seconds(); s > 0 {
		r.PeerBytesPerS = float64(m.net.bytes) / float64(len(m.lives)) / s
	}
}

// close ends what still waits.
func (m *many) close() {
	m.tasks.closed = true
	m.each(func(l *life) { l.end() })
}

// life is one run of a node's process.
type life struct {
	many   *many
	number int
	name   string
	node   *node
	ledger *ledger.Ledger
	step   *cluster.Stepped
	waits  waits
	news   *event // when news is told next
	asked  []int  // nodes whose digests wait for an answer
	busy   bool   // one is being answered
	over   bool
}

func (m *many) newLife(number int) (*life, error) {
	s := m.sim
	blocks, err := blockmap.New(blockmap.Config{MaxBytes: s.cfg.MaxIndexBytes, TTL: s.cfg.TTL})
	if err != nil {
		return nil, fmt.Errorf("make block map: %w", err)
	}
	m.boots++
	l := &life{many: m, number: number, name: nodeName(number), ledger: ledger.New(), waits: waits{tasks: m.tasks}}
	l.news = &event{place: absent, do: l.tellNews}
	cfg := s.nodeConfig(number)
	l.step, err = cluster.NewStepped(cluster.Config{
		Node: l.name, Cluster: clusterName, Boot: m.boots, BlockSize: cfg.router.BlockSize, HashKey: chain.DeriveKey(clusterName),
		NewsEvery: s.cfg.News, Ledger: l.ledger, Map: blocks, Now: cfg.router.Now, Rand: cfg.router.Rand,
	}, l)
	if err != nil {
		return nil, err
	}
	cfg.opened = func(b *router.Backend) { l.step.Open(b.Slot, b.ID) }
	cfg.closed = func(b *router.Backend) { l.step.Close(b.Slot) }
	if l.node, err = newNode(cfg, l.step.Loads(), l.step.Locations()); err != nil {
		return nil, err
	}
	l.node.look(s.engines.servers)
	s.loop.after(beatOffset(number), l.beat)
	return l, nil
}

// beatOffset lets nodes beat one after the other, as processes that were not
// started at the same moment do.
func beatOffset(number int) time.Duration {
	return cluster.BeatEvery + time.Duration(number)*1700*time.Microsecond%cluster.BeatEvery
}

func (l *life) beat() {
	if l.over {
		return
	}
	l.many.each(func(o *life) {
		if o != l {
			l.step.Heard(o.name)
		}
	})
	l.step.Beat()
	l.settle()
	l.many.sim.loop.after(cluster.BeatEvery, l.beat)
}

// settle does what is due after anything that the node has done.
func (l *life) settle() {
	if l.over {
		return
	}
	l.waits.look()
	if at, ok := l.step.NewsDue(); ok && l.news.place == absent {
		l.many.sim.loop.move(l.news, at)
	} else if ok && at < l.news.at {
		l.many.sim.loop.move(l.news, at)
	}
}

func (l *life) tellNews() {
	if l.over {
		return
	}
	l.step.TellNews()
	l.settle()
}

// Carry implements cluster.Surroundings.
func (l *life) Carry(to string, _ link.Lane, kind byte, body []byte) bool {
	o := l.many.named(to)
	if o == nil || l.over {
		return false
	}
	l.many.net.send(l.number, o.number, frame{kind, body}, func(frames []frame) { o.take(l, frames) })
	return true
}

func (m *many) named(name string) *life {
	for _, l := range m.lives {
		if l != nil && l.name == name {
			return l
		}
	}
	return nil
}

// take delivers frames, unless the connection that they came over is gone.
func (l *life) take(from *life, frames []frame) {
	if l.over || from.over {
		return
	}
	for _, f := range frames {
		if l.step.Deliver(from.name, f.kind, f.body) {
			l.asked = append(l.asked, from.number)
		}
	}
	l.answer()
	l.settle()
}

// answer answers the digests that have come, one after the other.
func (l *life) answer() {
	if l.busy || len(l.asked) == 0 {
		return
	}
	l.busy = true
	l.many.tasks.start(func() {
		for len(l.asked) > 0 && !l.over {
			to := l.asked[0]
			l.asked = l.asked[1:]
			l.step.Answer(context.Background(), nodeName(to))
		}
		l.busy = false
	})
}

// Wait implements cluster.Surroundings.
func (l *life) Wait(signal <-chan struct{}, limit time.Duration) bool {
	if l.over {
		return false
	}
	return l.waits.wait(signal, limit)
}

// RTT implements cluster.Surroundings.
func (l *life) RTT(string) time.Duration { return 2 * l.many.sim.cfg.Delay }

// Cut implements cluster.Surroundings: the connection ends a moment later, as
// the node may be in the midst of something.
func (l *life) Cut(peer string) {
	m := l.many
	m.sim.loop.after(0, func() {
		if o := m.named(peer); o != nil && !l.over {
			m.disconnect(l, o)
		}
	})
}

// end ends the process.
func (l *life) end() {
	l.over = true
	l.node.end()
	l.waits.close()
	l.many.sim.loop.drop(l.news)
}

func nodeName(number int) string { return fmt.Sprintf("node-%d", number) }
