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
// times that of a nearly idle fleet, on eight backends: from the experiment
// "saturation". A workload of tenants is some 1,800 conversations however fast
// they begin; their clients' think times bound how hard it can press, so its
// crossing is less steep.
var saturates = map[place]float64{
	{"conversation", "8b"}:  2.7,
	{"conversation", "32b"}: 1.5,
	{"conversation", "70b"}: 1.44,
	{"agent", "8b"}:         58,
	{"agent", "32b"}:        37,
	{"agent", "70b"}:        56,
	{"tenants-1", "8b"}:     500,
	{"tenants-20", "8b"}:    250,
	{"tenants-20", "32b"}:   90,
	{"tenants-20", "70b"}:   72,
	{"tenants-200", "70b"}:  42,
	{"tenants-1000", "70b"}: 14,
	{"tenants-50", "32b"}:   105,
}

// Shares of the saturating rate.
const (
	halfLoad = 0.5
	copes    = 0.8
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

// copes is one policy where the fleet copes: as many requests as the time for all
// policies allows.
func (p place) copes(policy string) Case {
	return p.under(policy, copes).limited(enough(p.workload))
}

// enough is how many requests of a workload show what a policy is worth. Those of
// agents are more sessions than go on side by side. Tenants are all there: fewer
// would not press as hard.
func enough(workload string) int {
	switch workload {
	case "agent":
		return 4000
	case "conversation":
		return 5000
	}
	return 0
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
