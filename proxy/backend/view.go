package backend

import (
	"maps"
	"slices"
	"strings"

	"kvca/router"
	"kvca/state/ring"
)

// view is an immutable picture of the pool: requests read it without a lock, a
// change makes a new one.
type view struct {
	all    []*router.Backend
	of     map[*router.Backend]*Backend
	models map[string]*members
}

// members are the backends of one model. A model that no backend serves now but
// one has served is known, without members.
type members struct {
	facts    []*router.Backend
	backends []*Backend
	adapter  bool // on top of another model
	print    uint64
}

func newView(backends []*Backend) *view {
	v := &view{
		all:    make([]*router.Backend, 0, len(backends)),
		of:     make(map[*router.Backend]*Backend, len(backends)),
		models: make(map[string]*members),
	}
	for _, b := range backends {
		v.all = append(v.all, b.facts)
		v.of[b.facts] = b
		v.enter(b)
	}
	return v
}

func (v *view) enter(b *Backend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.engine.everServed {
		if v.models[name] == nil {
			v.models[name] = new(members)
		}
	}
	for _, name := range b.engine.models {
		m := v.models[name]
		m.facts = append(m.facts, b.facts)
		m.backends = append(m.backends, b)
		m.print ^= ring.Key(b.config.ID)
	}
	for _, c := range b.engine.cards {
		if m := v.models[c.ID]; m != nil && c.Parent != "" && c.Parent != c.ID {
			m.adapter = true
		}
	}
}

// spare reports whether b's breaker may open: no model of b may have more than
// half of its backends ejected.
func (v *view) spare(b *Backend) bool {
	found := false
	for _, m := range v.models {
		if !slices.Contains(m.backends, b) {
			continue
		}
		found = true
		if !halfRemains(m.backends, b) {
			return false
		}
	}
	return found || halfRemains(slices.Collect(maps.Values(v.of)), b)
}

func halfRemains(pool []*Backend, next *Backend) bool {
	ejected := 1
	for _, b := range pool {
		if b != next && b.facts.Standing() == router.Broken {
			ejected++
		}
	}
	return 2*ejected <= len(pool)
}

// publish makes the new view. p.mu is held.
func (p *Pool) publish() { p.view.Store(newView(p.sorted())) }

// sorted lists the backends by ID. p.mu is held.
func (p *Pool) sorted() []*Backend {
	return slices.SortedFunc(maps.Values(p.backends), func(a, b *Backend) int {
		return strings.Compare(a.config.ID, b.config.ID)
	})
}

// Model lists the backends that serve a model, whatever their standing, and says
// whether the model is known: whether a backend that is configured now serves it
// or did. The list is shared; it must not be changed.
func (p *Pool) Model(name string) (list []*router.Backend, known bool) {
	m := p.view.Load().models[name]
	if m == nil {
		return nil, false
	}
	return m.facts, true
}

// Print tells the sets of backends apart that serve a model at different nodes: equal
// sets have equal ones. It is 0 for none.
func (p *Pool) Print(model string) uint64 {
	if m := p.view.Load().models[model]; m != nil {
		return m.print
	}
	return 0
}

// IsAdapter is whether an engine says that the model is an adapter on top of another
// one: then its name is part of what names its cached blocks.
func (p *Pool) IsAdapter(model string) bool {
	m := p.view.Load().models[model]
	return m != nil && m.adapter
}

// All lists every backend. The list is shared; it must not be changed.
func (p *Pool) All() []*router.Backend { return p.view.Load().all }

// Of is the backend that facts belong to; nil once it has been removed.
func (p *Pool) Of(facts *router.Backend) *Backend { return p.view.Load().of[facts] }

// Models lists the names that backends serve now, sorted.
func (p *Pool) Models() []string {
	v := p.view.Load()
	names := make([]string, 0, len(v.models))
	for name, m := range v.models {
		if len(m.facts) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
