package study

import (
	"kvca/bench/engine"
	"kvca/bench/sim"
)

// backends is the size of the fleet where an experiment has no other.
const backends = 8

// place is a workload on a kind of engine: where policies compete.
type place struct{ workload, profile string }

func (p place) String() string { return p.workload + " " + p.profile }

// saturates is the rate of a place at which the default policy's mean TTFT is five
// times that at a fifth of the rate, on eight backends: found by the experiment
// "saturation", whose table has the crossing.
var saturates = map[place]float64{
	{"conversation", "8b"}:  2.6,
	{"conversation", "32b"}: 1.47,
	{"conversation", "70b"}: 1.42,
	{"agent", "8b"}:         100,
	{"agent", "32b"}:        70,
	{"agent", "70b"}:        92,
	{"tenants-1", "8b"}:     20,
	{"tenants-1", "70b"}:    5,
	{"tenants-20", "8b"}:    20,
	{"tenants-20", "32b"}:   6,
	{"tenants-20", "70b"}:   5,
	{"tenants-200", "32b"}:  5,
	{"tenants-200", "70b"}:  4,
	{"tenants-1000", "70b"}: 3,
	{"tenants-50", "32b"}:   4,
}

// Shares of the saturating rate.
const (
	halfLoad = 0.5
	copes    = 0.65
	above    = 1.05
)

// at is the place's workload at a share of what saturates it.
func (p place) at(share float64) Source {
	return Source{Workload: p.workload, Rate: share * saturates[p]}
}

// under is one policy at the place, on one node.
func (p place) under(policy string, share float64) Case {
	return Case{Source: p.at(share), Config: sim.Config{Policy: policy, Backends: backends, Profile: profile(p.profile)}}
}

// limited plays the first requests only.
func (c Case) limited(requests int) Case {
	c.Source.Limit = requests
	return c
}

// on puts a case on several nodes.
func (c Case) on(nodes int) Case {
	c.Config.Nodes = nodes
	if nodes > 1 {
		c.Config.Delay = networkDelay
	}
	return c
}

// profile panics on a name that is not in this package's own tables.
func profile(name string) engine.Profile {
	p, err := engine.ProfileNamed(name)
	if err != nil {
		panic(err)
	}
	return p
}
