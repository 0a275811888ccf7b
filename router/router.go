package router

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/state/chain"
	"kvca/state/ledger"
)

// ErrNoBackend means that no backend of the model may be tried: none is
// configured, all drain, or each was tried already.
var ErrNoBackend = errors.New("no backend is left to try")

// Config configures a Router. Start from DefaultConfig.
type Config struct {
	// BlockSize is the size of a block in bytes of CBR, a multiple of 8. All
	// nodes of a cluster use the same. Small blocks match more exactly and cost
	// more memory: 48 bytes a block and backend.
	BlockSize int
	// Policy names the policy of models that Policies does not name.
	Policy string
	// Policies names a policy per model.
	Policies map[string]string
	// ActiveBytes is what an active request weighs in the load, in bytes of CBR.
	// Heavier scatters short conversations over the fleet, lighter lets many
	// small requests pile up on one backend. Default 512.
	ActiveBytes float64
	// ExpectAbove is how many novel blocks a request must have for its chain to
	// count as its backend's before it is answered, where some of it is known.
	// Fewer are computed before another request could share them, and to expect
	// them means to book the whole chain before them. Default 2.
	ExpectAbove int
	// MirrorShare is how much of an engine's cache is believed in, as a share of its
	// size. Less, and blocks that are still there are taken for evicted; more, and
	// evicted ones for there. Default 0.95.
	MirrorShare float64
	// Cost, Weights and Guard are the constants of single policies.
	Cost    CostConfig
	Weights Weights
	Guard   Guard
	// Tiers is what a block counts for that lies in a slower tier of its engine.
	Tiers TierWeights
	// Now is the monotonic time since the node's epoch.
	Now func() time.Duration
	// Rand gives random numbers: ids and ties. Tests seed it.
	Rand func() uint64
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
}

// DefaultConfig is what `kvca serve` starts from.
func DefaultConfig() Config {
	epoch := time.Now()
	return Config{
		BlockSize:   512,
		Policy:      "cost",
		ActiveBytes: 512,
		ExpectAbove: 2,
		MirrorShare: 0.95,
		Cost:        DefaultCost(),
		Weights:     DefaultWeights(),
		Tiers:       DefaultTierWeights(),
		Now:         func() time.Duration { return time.Since(epoch) },
		Rand:        rand.Uint64,
	}
}

// Validate returns all faults at once.
func (c *Config) Validate() error {
	var faults []error
	if err := chain.CheckBlockSize(c.BlockSize); err != nil {
		faults = append(faults, fmt.Errorf("block_size: %w", err))
	}
	if err := CheckPolicy(c.Policy); err != nil {
		faults = append(faults, fmt.Errorf("policy: %w", err))
	}
	for model, name := range c.Policies {
		if err := CheckPolicy(name); err != nil {
			faults = append(faults, fmt.Errorf("policy of model %s: %w", model, err))
		}
	}
	if c.ActiveBytes < 0 {
		faults = append(faults, fmt.Errorf("active bytes %v must not be negative", c.ActiveBytes))
	}
	faults = append(faults, c.Cost.validate(), c.Weights.validate(), c.Guard.validate(), c.Tiers.validate())
	if !(c.MirrorShare > 0) {
		faults = append(faults, fmt.Errorf("mirror share %v: want more than 0", c.MirrorShare))
	}
	return errors.Join(faults...)
}

// Router decides where requests go. See the package's documentation.
type Router struct {
	cfg       Config
	loads     Loads
	locations Locations
	teller    Teller // the same as locations, nil where nobody is to be told
	slots     registry
	choice    atomic.Pointer[choice]
	models    *models
	metrics   *metrics
	questions sync.Pool
}

// New makes a router that books on loads and learns into locations.
func New(cfg Config, loads Loads, locations Locations) (*Router, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure router: %w", err)
	}
	r := &Router{cfg: cfg, loads: loads, locations: locations, metrics: newMetrics(cfg.Registerer)}
	r.teller, _ = locations.(Teller)
	r.questions.New = func() any { return new(question) }
	r.choice.Store(&choice{cfg.Policy, cfg.Policies})
	r.models = newModels(func(name string) *model {
		return newModel(policies[r.PolicyOf(name)](&r.cfg))
	})
	return r, nil
}

// choice is which policy decides for which model.
type choice struct {
	policy   string
	perModel map[string]string
}

// PolicyOf is the name of the policy that decides for a model.
func (r *Router) PolicyOf(model string) string {
	c := r.choice.Load()
	if name := c.perModel[model]; name != "" {
		return name
	}
	return c.policy
}

// SetPolicies puts other policies in force for the decisions that come, or changes
// nothing and says why. perModel is not to be changed afterwards.
func (r *Router) SetPolicies(policy string, perModel map[string]string) error {
	next := r.cfg
	next.Policy, next.Policies = policy, perModel
	if err := next.Validate(); err != nil {
		return fmt.Errorf("set policies: %w", err)
	}
	r.choice.Store(&choice{policy, perModel})
	r.models.each(func(name string, m *model) {
		p := policies[r.PolicyOf(name)](&r.cfg)
		m.policy.Store(&p)
	})
	return nil
}

// BlockSize is the size of a block in bytes of CBR.
func (r *Router) BlockSize() int { return r.cfg.BlockSize }

func (r *Router) now() time.Duration { return r.cfg.Now() }

// Route chooses one of members, the backends of the request's model, and books
// the request on it. The ticket must be closed, whatever becomes of the request.
// The only error is ErrNoBackend.
func (r *Router) Route(ctx context.Context, req *Request, members []*Backend) (*Ticket, error) {
	began := r.now()
	q := r.ask(req, members)
	defer q.done()
	m := r.models.get(req.Model)
	if !q.decide(m.rule()) {
		return nil, ErrNoBackend
	}
	q.order.ID = ledger.ID{r.cfg.Rand(), r.cfg.Rand()}
	grant := r.loads.Reserve(ctx, &q.order)
	t := q.ticket(m, grant)
	r.metrics.decided(&t.Decision, r.now()-began)
	return t, nil
}

// Explain answers what Route would decide now, with every candidate, and books
// and learns nothing.
func (r *Router) Explain(req *Request, members []*Backend) (Decision, error) {
	q := r.ask(req, members)
	defer q.done()
	if !q.decide(r.models.get(req.Model).rule()) {
		return Decision{}, ErrNoBackend
	}
	grant := r.loads.Peek(&q.order)
	d := q.decision(grant, int(q.order.Candidates[grant.Index].Ref))
	d.Candidates = q.candidates(members, d.Backend)
	return d, nil
}

// Run vacuums expired locations until ctx ends.
func (r *Router) Run(ctx context.Context) {
	tick := time.NewTicker(vacuumInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.vacuum(ctx)
		}
	}
}

// How often the vacuum looks, and how many locations it takes in one hold of
// the block map's lock: a few hundred microseconds at the worst.
const (
	vacuumInterval = 250 * time.Millisecond
	vacuumStep     = 512
)

func (r *Router) vacuum(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		_, more = r.locations.Vacuum(r.now(), vacuumStep)
	}
}
