package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"kvca/proxy/backend"
	"kvca/router"
)

// node is what the product runs on one node to decide: its own router on the
// loads and locations that it is given, and the backends as that node sees them.
// Nothing in it knows whether loads and locations are shared with other nodes.
type node struct {
	cfg       nodeConfig
	router    *router.Router
	locations router.Locations
	members   []*router.Backend // by number, nil where removed
	present   []*router.Backend // the same without gaps: what a decision chooses from
	numbers   map[*router.Backend]int
	heard     *heard // what the engines tell, nil where nobody listens
}

// nodeConfig is what a node is made of.
type nodeConfig struct {
	// router has its clock and its randomness.
	router   router.Config
	backends int
	// cacheTokens is what is known of the size of an engine's cache, 0 for nothing.
	cacheTokens int
	// weight is the weight of a backend.
	weight func(number int) float64
	// events are what the engines publish, nil where nobody listens.
	events *events
	// opened is called for every backend that becomes known, before a decision sees
	// it; nil for nobody.
	opened func(*router.Backend)
	// closed is called for every backend that is removed, after that; nil for nobody.
	closed func(*router.Backend)
}

func newNode(cfg nodeConfig, loads router.Loads, locations router.Locations) (*node, error) {
	r, err := router.New(cfg.router, loads, locations)
	if err != nil {
		return nil, fmt.Errorf("make router: %w", err)
	}
	n := &node{
		cfg: cfg, router: r, locations: locations,
		members: make([]*router.Backend, cfg.backends), numbers: make(map[*router.Backend]int),
	}
	if cfg.events != nil {
		n.heard = newHeard(cfg.backends)
	}
	for i := range cfg.backends {
		if err := n.add(i); err != nil {
			return nil, err
		}
	}
	if cfg.events != nil {
		cfg.events.join(n)
	}
	return n, nil
}

// end ends a node's life.
func (n *node) end() {
	if n.cfg.events != nil {
		n.cfg.events.leave(n)
	}
}

// backendID is a backend's name, the same on every node.
func backendID(number int) string { return "backend-" + strconv.Itoa(number) }

// add makes a backend known, healthy from the start.
func (n *node) add(number int) error {
	b, err := n.router.Add(backendID(number))
	if err != nil {
		return err
	}
	if n.cfg.opened != nil {
		n.cfg.opened(b)
	}
	b.SetStanding(router.Available)
	b.SetSpeed(n.cfg.weight(number))
	if n.cfg.cacheTokens > 0 {
		n.router.SetCache(b, n.cfg.cacheTokens, 0)
	}
	n.members[number], n.numbers[b] = b, number
	n.list()
	if n.heard == nil {
		return nil
	}
	b.SetPrecise(true)
	if err := n.heard.open(number, b.Slot); err != nil {
		return err
	}
	n.cfg.events.recall(n, number)
	return nil
}

// remove forgets a backend. Tickets on it stay good.
func (n *node) remove(number int) {
	b := n.members[number]
	if b == nil {
		return
	}
	if n.heard != nil {
		n.heard.close(number)
	}
	n.members[number] = nil
	delete(n.numbers, b)
	n.router.Remove(b)
	if n.cfg.closed != nil {
		n.cfg.closed(b)
	}
	n.list()
}

func (n *node) list() {
	n.present = slices.DeleteFunc(slices.Clone(n.members), func(b *router.Backend) bool { return b == nil })
}

// set changes a backend's standing.
func (n *node) set(number int, s router.Standing) {
	if b := n.members[number]; b != nil {
		b.SetStanding(s)
	}
}

// look takes over what is configured and who answers, as a node that starts in
// the midst of things finds out.
func (n *node) look(servers []*server) {
	for i, v := range servers {
		switch {
		case !v.listed:
			n.remove(i)
		case !v.up:
			n.set(i, router.Unhealthy)
		}
	}
}

// scrape reads the engines' metrics, as the pool does.
func (n *node) scrape(servers []*server) {
	for number, v := range servers {
		if b := n.members[number]; b != nil && v.up {
			b.SetUsage(v.KVUsage(), int64(v.Running()))
		}
	}
}

// scrapeInterval is how often the pool reads the metrics of a backend that works.
const scrapeInterval = time.Second

// slowStart lets a backend that has come back grow to its whole weight.
func (n *node) slowStart(l *loop, number int, whole time.Duration) {
	b, began := n.members[number], l.now
	if b == nil || whole <= 0 {
		return
	}
	var step func()
	step = func() {
		b.SetSpeed(n.cfg.weight(number) * backend.SlowStart(l.now-began, whole))
		if l.now-began < whole {
			l.after(slowStartStep, step)
		}
	}
	step()
}

// slowStartStep is how often the pool looks at a backend's speed.
const slowStartStep = 250 * time.Millisecond

// void forgets what was learned of a backend, whose cache is empty.
func (n *node) void(number int) {
	if b := n.members[number]; b != nil {
		n.router.Void(b)
	}
}

// ask is the question of j for the router.
func (n *node) ask(j *job) *router.Request {
	r := ask(j.request, n.router.BlockSize())
	if n.heard != nil {
		r.Index = n.lookup(j.request)
	}
	for _, number := range j.tried {
		if b := n.members[number]; b != nil {
			r.Tried = append(r.Tried, b)
		}
	}
	return r
}

// route decides for j. The only error that the router has is that no backend is
// left to try.
func (n *node) route(ctx context.Context, j *job) (backend int, ticket any) {
	t, err := n.router.Route(ctx, n.ask(j), n.present)
	if err != nil {
		return nobody, nil
	}
	return n.numbers[t.Backend], t
}

// begin and end pass on what became of j. They need no node, since the ticket
// knows its own.
func begin(j *job) { j.ticket.(*router.Ticket).Begin() }

func end(j *job) {
	t := j.ticket.(*router.Ticket)
	if j.answered {
		t.Observe(int64(j.request.PromptTokens), int64(j.cached))
	}
	t.Close()
}

// How often a node vacuums its map, and how much it takes at a time: as the
// product's own vacuum does.
const (
	vacuumInterval = 250 * time.Millisecond
	vacuumStep     = 512
)

func (n *node) vacuum(now time.Duration) {
	for more := true; more; {
		_, more = n.locations.Vacuum(now, vacuumStep)
	}
}
