package router

import (
	"fmt"
	"slices"
	"strings"
)

// policy turns a question into an order. A policy belongs to one model; its
// methods may be called from any goroutine.
type policy interface {
	// order writes q.order: at least one candidate, all of them eligible. There
	// is at least one eligible backend.
	order(q *question)
	// looks is whether the policy takes the prompt into account.
	looks() bool
}

// Policies by the name that operators select them by.
var policies = map[string]func(*Config) policy{
	"cost":          func(c *Config) policy { return costPolicy{c.Cost} },
	"two-phase":     func(c *Config) policy { return twoPhase{c.Guard} },
	"weighted":      func(c *Config) policy { return weighted{c.Weights, c.Guard} },
	"round-robin":   func(*Config) policy { return new(roundRobin) },
	"random":        func(*Config) policy { return random{} },
	"least-request": func(*Config) policy { return leastRequest{} },
	"p2c":           func(*Config) policy { return twoChoices{} },
	"bounded-hash":  func(*Config) policy { return boundedHash{} },
}

// PolicyNames are the names of all policies, sorted.
func PolicyNames() []string {
	names := make([]string, 0, len(policies))
	for name := range policies {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// CheckPolicy says what is wrong with a policy's name, nil for nothing.
func CheckPolicy(name string) error {
	if _, ok := policies[name]; !ok {
		return fmt.Errorf("unknown policy %q: use one of %s", name, strings.Join(PolicyNames(), ", "))
	}
	return nil
}
