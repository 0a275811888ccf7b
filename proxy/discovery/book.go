package discovery

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"kvca/proxy/backend"
)

const (
	// emptyFor is how long an answer without backends must stand to count.
	emptyFor = 30 * time.Second
	// retryAfter is the time until a step that the pool refused is tried again.
	retryAfter = 30 * time.Second
)

// verb is what a step does.
type verb uint8

const (
	addIt verb = iota
	changeIt
	drainIt
	undrainIt
	removeIt
)

var verbNames = [...]string{"add", "change", "drain", "undrain", "remove"}

func (v verb) String() string { return verbNames[v] }

// step is one thing that the pool is to do.
type step struct {
	verb   verb
	config backend.Config // its ID, and what it is to be
	source int
}

// answer is what a source last said.
type answer struct {
	list  []backend.Config
	heard bool
	// empty is since when it has said that there is nothing, while list still has what
	// it said before; zero where that is not so.
	empty time.Time
}

// owned is a backend that discovery has added.
type owned struct {
	config  backend.Config
	drained bool      // by discovery, not by the operator
	gone    time.Time // since when no source names it; zero while one does
	away    bool      // the operator has removed it
}

// clash is an ID that a source names and that another has.
type clash struct {
	id     string
	source int
	holder int // the source that has it; -1 for somebody else than discovery
}

// book is what discovery knows and has done. It is a plain state machine: its owner
// holds the lock, brings the time and the pool's status, and does the steps.
type book struct {
	answers []answer
	own     map[string]*owned
	retry   map[string]time.Time
	drain   time.Duration // how long a backend that is gone may go on with its requests
}

func newBook(sources int, drain time.Duration) *book {
	return &book{answers: make([]answer, sources), own: make(map[string]*owned), retry: make(map[string]time.Time), drain: drain}
}

// hear takes what a source says.
func (b *book) hear(source int, list []backend.Config, now time.Time) {
	a := &b.answers[source]
	a.heard = true
	if len(list) > 0 || len(a.list) == 0 {
		a.list, a.empty = list, time.Time{}
	} else if a.empty.IsZero() {
		a.empty = now
	}
}

// heard is whether every source has answered.
func (b *book) heard() bool {
	return !slices.ContainsFunc(b.answers, func(a answer) bool { return !a.heard })
}

// waits reports whether time alone may bring a step.
func (b *book) waits() bool {
	if len(b.retry) > 0 || slices.ContainsFunc(b.answers, func(a answer) bool { return !a.empty.IsZero() }) {
		return true
	}
	for _, o := range b.own {
		if o.drained || !o.gone.IsZero() || o.config.Draining {
			return true
		}
	}
	return false
}

// plan says what makes the pool, as it is now, agree with the sources, and which IDs
// more than one claims. Steps that were done are told to done.
func (b *book) plan(now time.Time, pool map[string]backend.Status) ([]step, []clash) {
	for i := range b.answers {
		if a := &b.answers[i]; !a.empty.IsZero() && now.Sub(a.empty) >= emptyFor {
			a.list, a.empty = nil, time.Time{}
		}
	}
	wanted, clashes := b.wanted()
	var steps []step
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		status, present := pool[id]
		if o := b.own[id]; present && (o == nil || o.away || status.Learned) {
			delete(b.own, id)
			clashes = append(clashes, clash{id, wanted[id].source, -1})
			continue
		}
		if now.Before(b.retry[id]) {
			continue
		}
		delete(b.retry, id)
		steps = append(steps, b.keep(wanted[id], status, present)...)
	}
	for _, id := range slices.Sorted(maps.Keys(b.own)) {
		if _, named := wanted[id]; !named {
			status, present := pool[id]
			steps = append(steps, b.part(id, status, present && !status.Learned, now)...)
		}
	}
	for id := range b.retry {
		if _, named := wanted[id]; !named {
			delete(b.retry, id)
		}
	}
	return steps, clashes
}

// wanted merges what the sources say: of an ID the first source counts.
func (b *book) wanted() (map[string]step, []clash) {
	wanted := make(map[string]step)
	var clashes []clash
	for i, a := range b.answers {
		for _, c := range a.list {
			if first, taken := wanted[c.ID]; taken {
				clashes = append(clashes, clash{c.ID, i, first.source})
				continue
			}
			wanted[c.ID] = step{config: c, source: i}
		}
	}
	return wanted, clashes
}

// keep brings a backend that is named to what it is named as.
func (b *book) keep(want step, status backend.Status, present bool) []step {
	as := func(v verb) step { return step{v, want.config, want.source} }
	o := b.own[want.config.ID]
	switch {
	case o == nil && want.config.Draining:
		return nil
	case o == nil:
		return []step{as(addIt)}
	case !present: // who took it away wants it away
		o.away, o.gone = true, time.Time{}
		return nil
	}
	o.gone = time.Time{}
	if !sameEngine(o.config, want.config) {
		steps := []step{as(removeIt)}
		if !want.config.Draining {
			steps = append(steps, as(addIt))
		}
		return steps
	}
	var steps []step
	if !sameTuning(o.config, want.config) {
		steps = append(steps, as(changeIt))
	}
	o.config.Draining = want.config.Draining
	return append(steps, o.gate(want.config.Draining, status, as)...)
}

// gate drains a backend, or ends what discovery itself has drained.
func (o *owned) gate(shut bool, status backend.Status, as func(verb) step) []step {
	switch {
	case shut && status.Health != draining:
		return []step{as(drainIt)}
	case !shut && o.drained:
		return []step{as(undrainIt)}
	}
	return nil
}

// draining is the health of a backend that is drained.
const draining = "draining"

// part ends a backend that nobody names any more: it is drained at least until the
// next plan, so that requests which are on their way to it are counted.
func (b *book) part(id string, status backend.Status, present bool, now time.Time) []step {
	o := b.own[id]
	if !present {
		delete(b.own, id)
		return nil
	}
	as := func(v verb) step { return step{v, o.config, 0} }
	switch {
	case o.gone.IsZero():
		o.gone = now
	case status.Active == 0 || now.Sub(o.gone) >= b.drain:
		return []step{as(removeIt)}
	}
	return o.gate(true, status, as)
}

// done takes in what became of a step.
func (b *book) done(s step, err error, now time.Time) {
	id := s.config.ID
	switch {
	case s.verb == removeIt: // it is gone, whoever did it
		delete(b.own, id)
	case err != nil && (s.verb == addIt || s.verb == changeIt):
		b.retry[id] = now.Add(retryAfter)
	case s.verb == addIt:
		b.own[id] = &owned{config: s.config}
	case err != nil || b.own[id] == nil: // the next plan sees why
	case s.verb == changeIt:
		b.own[id].config = s.config
	default:
		b.own[id].drained = s.verb == drainIt
	}
}

// sameEngine is whether two configurations mean the same engine, reached the same way.
func sameEngine(a, b backend.Config) bool {
	for _, c := range []*backend.Config{&a, &b} {
		c.Weight, c.Models, c.CacheTokens, c.Zone, c.Draining = 0, nil, 0, "", false
	}
	return reflect.DeepEqual(a, b)
}

// sameTuning is whether two configurations of one engine say the same of it.
func sameTuning(a, b backend.Config) bool {
	return a.Weight == b.Weight && a.CacheTokens == b.CacheTokens && a.Zone == b.Zone && slices.Equal(a.Models, b.Models)
}

// of names who holds an ID.
func (c clash) of(sources []Source) string {
	if c.holder < 0 {
		return "the configuration, the admin API or a peer"
	}
	return fmt.Sprint(sources[c.holder])
}
