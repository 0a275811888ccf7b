package sim

import (
	"context"
	"fmt"
	"time"

	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/ledger"
)

// product is the product on one node: the router on a ledger and a block map of
// its own, as `kvca serve` runs it without peers.
type product struct {
	sim    *simulation
	node   *node
	ledger *ledger.Ledger
	blocks *blockmap.Map
}

func newProduct(s *simulation) (*product, error) {
	p := &product{sim: s}
	if err := p.start(); err != nil {
		return nil, err
	}
	s.loop.every(scrapeInterval, func() { p.node.scrape(s.engines.servers) })
	s.loop.every(vacuumInterval, func() { p.node.vacuum(s.loop.now) })
	return p, nil
}

// start makes a node that knows nothing but the configuration and who answers.
func (p *product) start() (err error) {
	cfg := &p.sim.cfg
	if p.blocks, err = blockmap.New(blockmap.Config{MaxBytes: cfg.MaxIndexBytes, TTL: cfg.TTL}); err != nil {
		return fmt.Errorf("make block map: %w", err)
	}
	p.ledger = ledger.New()
	if p.node, err = newNode(p.sim.nodeConfig(0), router.LocalLoads(p.ledger, "node-0"), p.blocks); err != nil {
		return err
	}
	p.node.look(p.sim.engines.servers)
	return nil
}

// nodeConfig is what the product's node of that number is made of, but for what a
// cluster adds.
func (s *simulation) nodeConfig(number int) nodeConfig {
	cfg := nodeConfig{router: s.cfg.Router, backends: s.cfg.Backends, weight: s.cfg.weightOf, events: s.events}
	cfg.router.Now = func() time.Duration { return s.loop.now }
	cfg.router.Rand = s.chance(chanceNodes + number).Uint64
	cfg.router.Registerer = nil
	if s.cfg.Mirror == Known {
		cfg.cacheTokens = s.cfg.Profile.KVTokens
	}
	return cfg
}

func (p *product) route(j *job, decided decided) { decided(p.node.route(context.Background(), j)) }
func (p *product) begin(j *job)                  { begin(j) }
func (p *product) end(j *job)                    { end(j) }

func (p *product) lost(backend int) { p.node.set(backend, router.Unhealthy) }

func (p *product) back(backend int) {
	p.node.void(backend)
	p.node.set(backend, router.Available)
	p.node.slowStart(&p.sim.loop, backend, p.sim.cfg.SlowStart)
}

func (p *product) removed(backend int) { p.node.remove(backend) }

// added can't fail: there is a slot, since there was one before.
func (p *product) added(backend int) { _ = p.node.add(backend) }

func (p *product) killed(int) { p.node.end() }

// started can't fail: it is as the first time.
func (p *product) started(_ int, ready func()) {
	_ = p.start()
	ready()
}

func (p *product) report(*Result) {}
func (p *product) close()         {}
