package rival

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Request is what a router knows of a request.
type Request struct {
	ID      uint64
	Session uint64
	// Names are those of the prompt's complete units, chained.
	Names        []uint64
	PromptTokens int
	OutputTokens int
}

// beginning is the request to a router that looks at no more than its first units.
func (r *Request) beginning(units int) *Request {
	short := *r
	short.Names = r.Names[:min(units, len(r.Names))]
	return &short
}

// Engine is what may be seen of an engine. The figures are read by Tick, at the
// rival's interval; Cached is asked at each decision by those that follow the
// engines' events, and by the oracle.
type Engine interface {
	Running() int
	// Queued is how many requests found no room in its last step, as engines export it.
	Queued() int
	KVUsage() float64
	// Cached returns how many of the units at the beginning it holds.
	Cached(names []uint64) int
}

// Sharing is what the gateways of a fleet tell each other.
type Sharing int

const (
	// Nothing leaves each gateway with what it has routed itself.
	Nothing Sharing = iota
	// Map makes them believe the same, at once; loads remain each one's own.
	Map
	// MapAndLoads tells the loads too, after Config.Delay.
	MapAndLoads
)

// Config describes a fleet.
type Config struct {
	// Engines are the backends, by number.
	Engines []Engine
	// CacheTokens is the size of one engine's KV cache. No rival here sizes its
	// belief by it.
	CacheTokens int
	// Gateways is how many gateways route; 0 is 1.
	Gateways int
	Sharing  Sharing
	// Delay is how late a gateway hears of the others' loads.
	Delay time.Duration
	// UnitTokens is how many tokens one name stands for.
	UnitTokens int
	// Rand decides among equals: two fleets with equal sequences decide alike.
	Rand func() uint64
}

func (c *Config) check() error {
	var faults []error
	if n := len(c.Engines); n == 0 || n > math.MaxInt16 {
		faults = append(faults, fmt.Errorf("engines: %d, must be 1 to %d", n, math.MaxInt16))
	}
	if c.Gateways < 0 {
		faults = append(faults, fmt.Errorf("gateways: %d, must not be negative", c.Gateways))
	}
	if c.UnitTokens <= 0 {
		faults = append(faults, fmt.Errorf("unit tokens: %d, must be positive", c.UnitTokens))
	}
	if c.Sharing < Nothing || c.Sharing > MapAndLoads {
		faults = append(faults, fmt.Errorf("sharing: %d, must be 0 to %d", c.Sharing, MapAndLoads))
	}
	if c.Rand == nil {
		faults = append(faults, errors.New("rand: missing"))
	}
	return errors.Join(faults...)
}

// Fleet is the gateways of one router, in virtual time. Its methods and those of
// its tickets belong to one goroutine, and time must not go back.
type Fleet struct {
	cfg      Config
	design   design
	rule     rule
	gateways []gateway
	books    *books
	question question
	scraped  time.Duration // when figures were read last
	ticked   bool
}

// gateway is what one gateway knows by itself, or all of them where shared.
type gateway struct {
	belief *belief // nil where the rule wants none
	active *active // nil where the rule wants none
	cold   []uint64
	colds  uint64
}

// New makes a fleet of the rival of that name.
func New(name string, cfg Config) (*Fleet, error) {
	d, err := find(name)
	if err != nil {
		return nil, err
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("rival %s: %w", name, err)
	}
	cfg.Gateways = max(1, cfg.Gateways)
	if d.exact {
		cfg.Sharing, cfg.Delay = MapAndLoads, 0
	}
	n := len(cfg.Engines)
	f := &Fleet{
		cfg: cfg, design: d, rule: d.rule(&cfg),
		books: newBooks(cfg.Gateways, n, cfg.Sharing == MapAndLoads, cfg.Delay),
		question: question{
			unit: cfg.UnitTokens, down: make([]bool, n), match: make([]int, n), busy: make([]int, n),
			loads: make([]load, n), figures: make([]figure, n), rand: cfg.Rand,
		},
	}
	f.found(n)
	f.listLive()
	return f, nil
}

// found makes what the gateways know, one for all where it is shared.
func (f *Fleet) found(backends int) {
	f.gateways = make([]gateway, f.cfg.Gateways)
	for i := range f.gateways {
		g := &f.gateways[i]
		g.cold = make([]uint64, backends)
		if f.design.keeps != nil {
			g.belief = newBelief(backends, f.design.keeps(&f.cfg))
		}
		if f.design.tracks != never {
			g.active = newActive(backends)
		}
		if f.cfg.Sharing >= Map {
			g.belief = f.gateways[0].belief
		}
		if f.cfg.Sharing == MapAndLoads {
			g.active = f.gateways[0].active
		}
	}
}

func (f *Fleet) listLive() {
	f.question.live = f.question.live[:0]
	for b, down := range f.question.down {
		if !down {
			f.question.live = append(f.question.live, b)
		}
	}
}

// Tick reads the engines' figures where they are due, and delivers what is shared.
func (f *Fleet) Tick(now time.Duration) {
	f.books.deliver(now)
	if f.design.scrape == 0 || f.ticked && now-f.scraped < f.design.scrape {
		return
	}
	f.ticked, f.scraped = true, now
	for b := range f.question.figures {
		f.scrape(b)
	}
}

func (f *Fleet) scrape(backend int) {
	if f.question.down[backend] {
		return
	}
	e := f.cfg.Engines[backend]
	f.question.figures[backend] = figure{e.Queued(), e.KVUsage()}
}

// Route chooses a backend for a request that has come to a gateway, and books it
// there. The ticket's backend is -1 where all are down.
func (f *Fleet) Route(gateway int, r *Request, now time.Duration) *Ticket {
	t := &Ticket{Backend: none, fleet: f, gateway: gateway}
	if len(f.question.live) == 0 {
		t.over = true
		return t
	}
	if f.design.reads > 0 {
		r = r.beginning(f.design.reads / charsPerToken / f.cfg.UnitTokens)
	}
	g := &f.gateways[gateway]
	f.ask(g, gateway, r, now)
	t.Backend = f.rule.choose(&f.question)
	f.note(g, t.Backend)
	if g.belief != nil {
		g.belief.learn(r.Names, t.Backend, now)
	}
	t.book(r, now)
	return t
}

// ask fills in the question as the gateway knows things now.
func (f *Fleet) ask(g *gateway, number int, r *Request, now time.Duration) {
	q := &f.question
	q.request, q.cold = r, g.cold
	f.books.deliver(now)
	f.books.view(number, q.loads)
	if g.active != nil {
		g.active.leading(r.Names, q.busy)
	}
	if g.belief != nil {
		g.belief.age(now)
	}
	switch f.design.counts {
	case nothing:
	case leading:
		g.belief.leading(r.Names, q.match)
	case counted:
		g.belief.counted(r.Names, q.match)
	case deepest:
		g.belief.deepest(r.Names, q.match)
	case trunk:
		q.depth, q.holder = g.belief.trunk(r.Names)
	case truth:
		for _, b := range q.live {
			q.match[b] = f.cfg.Engines[b].Cached(r.Names)
		}
	}
}

// note remembers who got a request that nobody had a unit of.
func (f *Fleet) note(g *gateway, backend int) {
	if f.design.counts == counted && !f.question.anyMatch() {
		g.colds++
		g.cold[backend] = g.colds
	}
}

// Remove takes a backend out: it is not chosen any more. Routers that clean up
// forget what it held; its open tickets still have to be ended.
func (f *Fleet) Remove(backend int) {
	f.question.down[backend] = true
	f.listLive()
	for i := range f.gateways {
		g := &f.gateways[i]
		g.cold[backend] = 0
		if g.belief != nil && g.belief.forgets {
			g.belief.forget(backend)
		}
	}
}

// Restore puts a backend back, with an empty cache.
func (f *Fleet) Restore(backend int) {
	f.question.down[backend] = false
	f.listLive()
	f.scrape(backend)
}
