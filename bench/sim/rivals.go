package sim

import (
	"fmt"
	"time"

	"kvca/bench/rival"
	"kvca/bench/trace"
)

// rivals are nodes that decide by another router's rule.
type rivals struct {
	sim   *simulation
	fleet *rival.Fleet
}

// scrape is how often a rival may look at engines and deliver what its nodes share.
const scrape = 50 * time.Millisecond

func newRivals(s *simulation) (*rivals, error) {
	list := make([]rival.Engine, len(s.engines.servers))
	for i, v := range s.engines.servers {
		list[i] = v
	}
	fleet, err := rival.New(s.cfg.Policy, rival.Config{
		Engines: list, CacheTokens: s.cfg.Profile.KVTokens, Gateways: s.cfg.Nodes, Sharing: s.cfg.Sharing,
		Delay: s.cfg.Delay, UnitTokens: trace.UnitTokens, Rand: s.chance(chanceRivals).Uint64,
	})
	if err != nil {
		return nil, fmt.Errorf("make rival: %w", err)
	}
	s.loop.every(scrape, func() { fleet.Tick(s.loop.now) })
	return &rivals{sim: s, fleet: fleet}, nil
}

func (r *rivals) route(j *job, decided decided) {
	t := r.fleet.Route(j.node, &rival.Request{
		ID: j.number, Session: j.session.number, Names: j.request.Names,
		PromptTokens: j.request.PromptTokens, OutputTokens: j.request.OutputTokens,
	}, r.sim.loop.now)
	if t == nil {
		decided(nobody, nil)
		return
	}
	decided(t.Backend, t)
}

func (r *rivals) begin(j *job) { j.ticket.(*rival.Ticket).Begin(r.sim.loop.now) }

func (r *rivals) end(j *job) {
	j.ticket.(*rival.Ticket).End(r.sim.loop.now)
}

func (r *rivals) lost(backend int)    { r.fleet.Remove(backend) }
func (r *rivals) back(backend int)    { r.fleet.Restore(backend) }
func (r *rivals) removed(backend int) { r.fleet.Remove(backend) }
func (r *rivals) added(backend int)   { r.fleet.Restore(backend) }

// A rival's node that is killed loses its clients only; what it knows is still
// there when it comes back.
func (r *rivals) killed(int)                  {}
func (r *rivals) started(_ int, ready func()) { ready() }

func (r *rivals) report(*Result) {}
func (r *rivals) close()         {}
