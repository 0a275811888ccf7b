package tenant

import (
	"strings"
	"time"
)

// Tenant is one customer of the gateway: what its keys may do, and its share. One
// that Directory.Find gave out never changes; a reload makes others.
type Tenant struct {
	// Name names the tenant in logs and metrics. It stands in the keys file, so
	// that no client makes up labels.
	Name string

	// Models are the models it may use: names, or prefixes ending in *. Empty: all.
	Models []string

	// CacheSalt keeps its prompts apart from other tenants' in the engines' caches,
	// "" for none. It is a secret: who knows it can ask the cache what was in it.
	CacheSalt string

	// Class is its place in the queue: 0 comes first, 9 last. Default 5.
	Class int

	// Priority is what X-Gateway-Priority says to the engine, where that is
	// switched on: 0 or 100.
	Priority int

	// Weight is its share in the queue beside other tenants of its class: 2 gets
	// twice the turns of 1. Default 1.
	Weight float64

	// Limits hold for the tenant as a whole.
	Limits Limits

	// PerModel are limits of single models, by the model's own name. They hold
	// beside those of the whole.
	PerModel map[string]Limits

	// Trusted is whether its requests may hold fields that steer the engine.
	Trusted bool
}

// Limits bound what a tenant may use. A field that is zero bounds nothing.
type Limits struct {
	// RequestsPerSecond is how many requests may begin.
	RequestsPerSecond float64
	// TokensPerSecond is how many tokens may be read and written.
	TokensPerSecond float64
	// Concurrent is how many requests may be under way at the same time.
	Concurrent int
	// Burst is how long a quiet tenant saves up what it does not use. Default 1s.
	Burst time.Duration
}

// Allows is whether the tenant may use the model.
func (t *Tenant) Allows(model string) bool {
	if len(t.Models) == 0 {
		return true
	}
	for _, allowed := range t.Models {
		prefix, open := strings.CutSuffix(allowed, "*")
		if allowed == model || open && strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}
