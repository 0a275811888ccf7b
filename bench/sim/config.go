package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvca/bench/engine"
	"kvca/bench/rival"
	"kvca/bench/trace"
	"kvca/router"
)

// Config is one run. Zero fields take the defaults that they name.
type Config struct {
	// Policy is a policy of the product or the name of a rival, one of Policies.
	Policy string
	// Nodes are gateways, Backends engines; each 1 where 0.
	Nodes, Backends int
	// Profile is what the engines are. Its unit of the cache is set to that of
	// the trace.
	Profile engine.Profile
	// Slower is how many times as long every second engine takes for its work; 0 and 1
	// for equal ones. The product's nodes are given the backends' weights, unless
	// Unweighted.
	Slower     float64
	Unweighted bool
	// Seed decides everything that chance decides: which node a client asks, ties,
	// random policies. Same seed, same result.
	Seed uint64
	// Delay is the time between two nodes, one way; it varies by a fifth of that.
	Delay time.Duration
	// Loss is the share of frames between nodes that get lost, 0 to below 1.
	Loss float64
	// News is the least time between two writes of news from one of the product's
	// nodes to another, the product's default where 0.
	News time.Duration
	// SlowStart is the time in which a restarted backend grows to its whole
	// weight, as the product's pool does it; 0 for its default, 10 s, negative for
	// none.
	SlowStart time.Duration
	// Sharing is what the nodes of a rival tell each other.
	Sharing rival.Sharing
	// Router holds the product's constants. Where its BlockSize is 0, they are
	// router.DefaultConfig's. Policy, clock and randomness are the simulation's.
	Router router.Config
	// Mirror is what the product's nodes know of the sizes of caches.
	Mirror Mirror
	// Precise lets the engines publish what they hold, and the product's nodes go by
	// that in place of what they believe.
	Precise bool
	// Disturb is what goes wrong, or is changed, in the course of the run.
	Disturb []Disturbance
	// Window is the time that one element of Result.Windows stands for; 0 for none.
	Window time.Duration
	// TTL is how long a location is believed in without use, 10 minutes where 0.
	TTL time.Duration
	// MaxIndexBytes bounds the block map of one node, 96 MiB where 0.
	MaxIndexBytes int64
}

// Mirror is what nodes know of the sizes of their backends' caches.
type Mirror int

const (
	// Known: as where engines publish it, the mirror has the cache's size.
	Known Mirror = iota
	// Unknown: only the TTL bounds what is believed.
	Unknown
)

// What `kvca serve` takes by default.
const (
	defaultTTL           = 10 * time.Minute
	defaultMaxIndexBytes = 96 << 20
	defaultSlowStart     = 10 * time.Second
)

// Bounds of what may be asked for.
const (
	MaxNodes    = 64
	MaxBackends = 4096
	maxDelay    = 10 * time.Second
	maxSlower   = 100
)

func (c Config) withDefaults() Config {
	c.Nodes, c.Backends = max(c.Nodes, 1), max(c.Backends, 1)
	if c.Router.BlockSize == 0 {
		c.Router = router.DefaultConfig()
	}
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.MaxIndexBytes == 0 {
		c.MaxIndexBytes = defaultMaxIndexBytes
	}
	if c.SlowStart == 0 {
		c.SlowStart = defaultSlowStart
	}
	if c.Slower == 0 {
		c.Slower = 1
	}
	c.Profile.BlockTokens = trace.UnitTokens
	c.Router.Policy = c.Policy
	c.Router.Policies = nil
	return c
}

// profileOf is what the engine of that number is.
func (c *Config) profileOf(number int) engine.Profile {
	p := c.Profile
	if number%2 == 1 {
		p.PrefillStep, p.DecodeStep = slower(p.PrefillStep, c.Slower), slower(p.DecodeStep, c.Slower)
		p.PerPromptToken, p.PerSeq, p.PerKVToken = slower(p.PerPromptToken, c.Slower), slower(p.PerSeq, c.Slower), slower(p.PerKVToken, c.Slower)
		p.PairPicos = int64(float64(p.PairPicos) * c.Slower)
	}
	return p
}

func slower(d time.Duration, times float64) time.Duration { return time.Duration(float64(d) * times) }

// weightOf is the weight of a backend that nodes are given.
func (c *Config) weightOf(number int) float64 {
	if number%2 == 1 && !c.Unweighted {
		return 1 / c.Slower
	}
	return 1
}

// Policies are the names that Config.Policy takes: the product's, then the
// rivals', then those of published set-ups.
func Policies() []string {
	return slices.Concat(router.PolicyNames(), rival.Names(), rival.Published())
}

// isProduct is whether the product itself decides, not a rival's rule.
func (c *Config) isProduct() bool { return slices.Contains(router.PolicyNames(), c.Policy) }

// Validate returns all faults at once.
func (c Config) Validate() error {
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	want(slices.Contains(Policies(), c.Policy), "policy: unknown %q: want one of %s", c.Policy, strings.Join(Policies(), ", "))
	want(c.Nodes >= 0 && c.Nodes <= MaxNodes, "nodes: %d: want 1 to %d", c.Nodes, MaxNodes)
	want(c.Backends >= 0 && c.Backends <= MaxBackends, "backends: %d: want 1 to %d", c.Backends, MaxBackends)
	want(c.Profile.KVTokens >= trace.UnitTokens, "profile: %d KV tokens: want at least the %d of a block", c.Profile.KVTokens, trace.UnitTokens)
	want(!c.Precise || c.isProduct(), "precise: policy %q takes no notice of events: want one of the product's", c.Policy)
	want(c.Slower >= 0 && c.Slower <= maxSlower, "slower: %v: want 0 to %d", c.Slower, maxSlower)
	want(c.Delay >= 0 && c.Delay <= maxDelay, "delay: %v: want 0s to %v", c.Delay, maxDelay)
	want(c.Loss >= 0 && c.Loss < 1, "loss: %v: want 0 to below 1", c.Loss)
	want(c.Window >= 0, "window: %v: want 0s or more", c.Window)
	want(fitsUnits(c.Router.BlockSize), "block size: %d: want a divisor or a multiple of the %d bytes of the trace's unit", c.Router.BlockSize, unitBytes)
	for i := range c.Disturb {
		if err := c.Disturb[i].check(max(c.Nodes, 1), max(c.Backends, 1)); err != nil {
			faults = append(faults, fmt.Errorf("disturbance %d: %w", i, err))
		}
	}
	return errors.Join(faults...)
}

// fitsUnits is whether blocks of that size begin and end with units of the trace, or the reverse.
func fitsUnits(blockSize int) bool {
	return blockSize == 0 || blockSize > 0 && (blockSize%unitBytes == 0 || unitBytes%blockSize == 0)
}

// checkStages wants a request in each stage, or no stages.
func checkStages(t *trace.Trace) error {
	if len(t.Stages) > 0 && t.Lanes > 0 {
		return errors.New("stages in a closed loop: want one of the two")
	}
	from := 0
	for _, place := range t.Stages {
		if place <= from || place >= len(t.Sessions) {
			return fmt.Errorf("a stage begins with session %d, the one before with %d, of %d: want ascending ones", place, from, len(t.Sessions))
		}
		from = place
	}
	if len(t.Stages) > 0 && slices.ContainsFunc(t.Sessions, func(s trace.Session) bool { return len(s.Requests) == 0 }) {
		return errors.New("stages with a session of no request: want one at least")
	}
	return nil
}

// checkTrace says why a trace can't be played, nil where it can.
func checkTrace(t *trace.Trace) error {
	if t == nil || t.Requests() == 0 {
		return errors.New("the trace has no requests")
	}
	if t.Lanes < 0 {
		return fmt.Errorf("%d lanes: want 1 or more, or 0 for an open loop", t.Lanes)
	}
	if err := checkStages(t); err != nil {
		return err
	}
	for i := range t.Sessions {
		for j := range t.Sessions[i].Requests {
			if after := t.Sessions[i].Requests[j].After; after < -1 || after >= j {
				return fmt.Errorf("session %d: request %d waits for request %d: want an earlier one, or -1", i, j, after)
			}
		}
	}
	return nil
}
