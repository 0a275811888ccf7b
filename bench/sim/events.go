package sim

import (
	"time"

	"kvca/bench/engine"
	"kvca/bench/trace"
	"kvca/router"
	"kvca/state"
	"kvca/state/chain"
	"kvca/state/kvindex"
)

// events are what the engines publish of their caches, one hop away from every node of
// the product that lives. A node that starts is told all there is, as the engines'
// replay sockets would.
type events struct {
	sim     *simulation
	held    []map[uint64]struct{} // by backend: what it has published
	hearers []*node
}

func newEvents(s *simulation) *events {
	e := &events{sim: s, held: make([]map[uint64]struct{}, s.cfg.Backends)}
	for i, v := range s.engines.servers {
		e.held[i] = make(map[uint64]struct{})
		e.watch(v)
	}
	return e
}

// watch begins with an engine whose cache is empty. Its names are those of the trace.
func (e *events) watch(v *server) {
	number := v.number
	v.Watch(func(_ time.Duration, changes []engine.Change) { e.publish(number, changes) })
}

// publish is a batch of one engine.
func (e *events) publish(number int, changes []engine.Change) {
	held := e.held[number]
	var told []kvindex.Held
	cleared := false
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case engine.Stored:
			for _, name := range c.Hashes {
				held[name] = struct{}{}
				told = append(told, kvindex.Held{Key: name, Tiers: 1 << kvindex.GPU})
			}
		case engine.Removed:
			for _, name := range c.Hashes {
				delete(held, name)
				told = append(told, kvindex.Held{Key: name})
			}
		case engine.Cleared:
			clear(held)
			told, cleared = nil, true
		}
	}
	e.sim.loop.after(hop, func() {
		for _, n := range e.hearers {
			n.hear(number, told, cleared)
		}
	})
}

// restarted is an engine that has lost its cache, and with it its connections.
func (e *events) restarted(number int) {
	clear(e.held[number])
	e.watch(e.sim.engines.servers[number])
	e.sim.loop.after(hop, func() {
		for _, n := range e.hearers {
			n.hear(number, nil, true)
		}
	})
}

// join lets a node hear from now on.
func (e *events) join(n *node) { e.hearers = append(e.hearers, n) }

// recall tells a node all that an engine holds.
func (e *events) recall(n *node, number int) {
	all := make([]kvindex.Held, 0, len(e.held[number]))
	for name := range e.held[number] {
		all = append(all, kvindex.Held{Key: name, Tiers: 1 << kvindex.GPU})
	}
	n.hear(number, all, true)
}

// leave ends that.
func (e *events) leave(n *node) {
	for i, other := range e.hearers {
		if other == n {
			e.hearers = append(e.hearers[:i:i], e.hearers[i+1:]...)
			return
		}
	}
}

// heard is what a node knows from the engines themselves.
type heard struct {
	index   *kvindex.Index
	sources []*kvindex.Source // by number, nil where the backend is removed
	held    kvindex.Result
	answer  router.IndexAnswer
}

// maxIndex bounds a node's index, far beyond what any simulated fleet holds.
const maxIndex = 4 << 30

func newHeard(backends int) *heard {
	index, err := kvindex.New(kvindex.Config{Key: chain.DeriveKey(clusterName), MaxBytes: maxIndex})
	if err != nil {
		panic(err) // the bounds are ours
	}
	return &heard{index: index, sources: make([]*kvindex.Source, backends)}
}

// open makes the source of a backend.
func (h *heard) open(number int, slot state.Slot) error {
	s, err := h.index.Open(kvindex.Origin{Slot: slot, Model: model})
	if err != nil {
		return err
	}
	s.SetLive(true)
	h.sources[number] = s
	return nil
}

func (h *heard) close(number int) {
	if s := h.sources[number]; s != nil {
		s.Close()
		h.sources[number] = nil
	}
}

// hear takes what an engine has published.
func (n *node) hear(number int, told []kvindex.Held, cleared bool) {
	if n.heard == nil || n.heard.sources[number] == nil {
		return
	}
	if cleared {
		n.heard.sources[number].Reset()
	}
	n.heard.sources[number].Put(told, trace.UnitTokens)
}

// lookup is what the index says of a request. The answer is good until the next.
func (n *node) lookup(r *trace.Request) *router.IndexAnswer {
	h := n.heard
	h.index.LookupKeys(r.Names, trace.UnitTokens, r.PromptTokens, &h.held)
	h.answer = router.IndexAnswer{Held: &h.held, Tokens: r.PromptTokens, Whole: true}
	return &h.answer
}
