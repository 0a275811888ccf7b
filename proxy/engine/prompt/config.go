package prompt

import (
	"errors"
	"fmt"
	"time"

	"kvca/state/cbr"
)

// Local finds tokens without asking anybody: from a model's tokenizer and chat
// template. It is called by several goroutines at once and must not keep body.
type Local interface {
	Tokens(endpoint cbr.Endpoint, body []byte) ([]uint32, error)
}

// Preference says when a model's Local is used in place of its engines.
type Preference string

// The preferences.
const (
	// Auto takes the local way as soon as a self-test has found it equal to the
	// engine's own: it costs no round trip.
	Auto Preference = "auto"
	// PreferEngine asks engines; the local way, if proven equal, only where none of
	// them can tell.
	PreferEngine Preference = "engine"
	// PreferLocal takes the local way from the start, unproven. What engines report
	// of their prompts still throws it out where it is wrong.
	PreferLocal Preference = "local"
)

// Config configures a Service. The zero value is ready.
type Config struct {
	// Budget is the least time that a request waits for its tokens; 20 ms by
	// default. Less, and long prompts are routed by what the turn before had; more,
	// and a slow engine delays every request by as much.
	Budget time.Duration
	// BudgetShare is what share of the expected prefill the wait may be where that
	// is more than Budget; 0.03 by default.
	BudgetShare float64
	// MaxBudget is the longest wait for any prompt; 250 ms by default.
	MaxBudget time.Duration
	// PrefillRate is how many tokens a second an engine is thought to compute. The
	// default, 8,000, is a guess at an 8B model on one accelerator, on the safe side:
	// the slower the prefill, the more a wait for its tokens may cost.
	PrefillRate float64

	// CacheBytes bounds the memory of the tokens that are remembered; 64 MiB by
	// default, some 16 million tokens.
	CacheBytes int64
	// MaxBackground bounds how many calls may go on after their request has stopped
	// waiting; 64 by default. A call beyond is abandoned.
	MaxBackground int
	// CallTimeout is how long a call may take altogether; 10 s by default.
	CallTimeout time.Duration
	// MaxPerEngine bounds the calls in flight to one engine; 16 by default. There is
	// no queue beyond: such a request does without.
	MaxPerEngine int
	// MaxBodyBytes bounds the copies of request bodies that calls in flight hold
	// together; 256 MiB by default.
	MaxBodyBytes int64
	// LocalParallel is how many prompts are tokenized locally at once; by default as
	// many as there are processors.
	LocalParallel int

	// RetryAfter is when a way that an engine did not have is tried again; 5 minutes
	// by default.
	RetryAfter time.Duration
	// SelfTestTimeout bounds one SelfTest; 15 s by default.
	SelfTestTimeout time.Duration

	// Local returns a model's local way, nil where it has none. It is asked for each
	// request and must be quick.
	Local func(model string) Local
	// Preference says when it is used; Auto by default.
	Preference Preference
}

func (c Config) validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Budget < 0, "Budget is %v: want a duration above 0, or 0 for the default", c.Budget)
	fault(c.MaxBudget < 0, "MaxBudget is %v: want a duration above 0, or 0 for the default", c.MaxBudget)
	fault(c.MaxBudget > 0 && c.Budget > c.MaxBudget, "Budget is %v: want at most MaxBudget, %v", c.Budget, c.MaxBudget)
	fault(!(c.BudgetShare >= 0 && c.BudgetShare <= 1), "BudgetShare is %v: want a share from 0 to 1", c.BudgetShare)
	fault(!(c.PrefillRate >= 0), "PrefillRate is %v: want tokens a second, or 0 for the default", c.PrefillRate)
	fault(c.CacheBytes < 0, "CacheBytes is %d: want a size above 0, or 0 for the default", c.CacheBytes)
	fault(c.MaxBackground < 0, "MaxBackground is %d: want a count above 0, or 0 for the default", c.MaxBackground)
	fault(c.CallTimeout < 0, "CallTimeout is %v: want a duration above 0, or 0 for the default", c.CallTimeout)
	fault(c.MaxPerEngine < 0, "MaxPerEngine is %d: want a count above 0, or 0 for the default", c.MaxPerEngine)
	fault(c.MaxBodyBytes < 0, "MaxBodyBytes is %d: want a size above 0, or 0 for the default", c.MaxBodyBytes)
	fault(c.LocalParallel < 0, "LocalParallel is %d: want a count above 0, or 0 for the default", c.LocalParallel)
	fault(c.RetryAfter < 0, "RetryAfter is %v: want a duration above 0, or 0 for the default", c.RetryAfter)
	fault(c.SelfTestTimeout < 0, "SelfTestTimeout is %v: want a duration above 0, or 0 for the default", c.SelfTestTimeout)
	switch c.Preference {
	case "", Auto, PreferEngine, PreferLocal:
	default:
		fault(true, "Preference is %q: want auto, engine or local", c.Preference)
	}
	return errors.Join(faults...)
}

func (c Config) withDefaults(processors int) Config {
	orElse(&c.Budget, 20*time.Millisecond)
	orElse(&c.BudgetShare, 0.03)
	orElse(&c.MaxBudget, max(c.Budget, 250*time.Millisecond))
	c.Budget = min(c.Budget, c.MaxBudget)
	orElse(&c.PrefillRate, 8000)
	orElse(&c.CacheBytes, 64<<20)
	orElse(&c.MaxBackground, 64)
	orElse(&c.CallTimeout, 10*time.Second)
	orElse(&c.MaxPerEngine, 16)
	orElse(&c.MaxBodyBytes, 256<<20)
	orElse(&c.LocalParallel, processors)
	orElse(&c.RetryAfter, 5*time.Minute)
	orElse(&c.SelfTestTimeout, 15*time.Second)
	orElse(&c.Preference, Auto)
	if c.Local == nil {
		c.Local = func(string) Local { return nil }
	}
	return c
}

func orElse[T comparable](v *T, standard T) {
	var zero T
	if *v == zero {
		*v = standard
	}
}

// bytesPerToken is what a token takes of a CBR, on average.
const bytesPerToken = 4

// budget is how long a request of so many bytes waits for its tokens.
func (c *Config) budget(bytes int64) time.Duration {
	prefill := float64(bytes) / bytesPerToken / c.PrefillRate // seconds
	share := c.BudgetShare * prefill * float64(time.Second)
	if share >= float64(c.MaxBudget) {
		return c.MaxBudget
	}
	return max(c.Budget, time.Duration(share))
}
