package study

import (
	"kvca/bench/report"
	"kvca/bench/rival"
	"kvca/bench/sim"
)

// fleetBackends and fleetNodes are of SMG's largest published run.
const (
	fleetBackends = 240
	fleetNodes    = 8
)

// smgPublished are SMG's own figures at that size: 240 workers with mock engines,
// 8 gateways, 611 sessions (about 823 requests) a second for 180 s. Source:
// lightseekorg/smg, issues 2438, 2437 and 2394. Its workload is not ours: what may
// be compared is what is lost against an index that all share.
var smgPublished = []struct {
	design      string
	cached, cov float64
}{
	{"shared index service", 0.873, 0.045},
	{"per-gateway trees", 0.727, 0.43},
	{"trees that gossip", 0.633, 0.46},
}

// keptCached is the share of one exact node's cached tokens that eight must have.
const keptCached = 0.9

func fleetCase(policy string, nodes int) Case {
	c := Case{
		Source: Source{Workload: "fleet", Rate: fleetSessions},
		Config: sim.Config{Policy: policy, Backends: fleetBackends, Profile: profile("8b")},
	}
	return c.on(nodes)
}

// sharedMap is SMG's rule with what its gateways have sent where known to all, as
// an index service or a feed of placements makes it.
func sharedMap() Case {
	c := fleetCase("smg", fleetNodes)
	c.Config.Sharing, c.Config.Delay = rival.Map, sharedDelay
	return c
}

func fleet() Experiment {
	rivals := []string{"smg", "llm-d"}
	e := Experiment{
		Name: "fleet", Seeds: 1,
		Question: "Do eight nodes in front of 240 backends, at 820 requests a second, get what one exact node gets?",
		Cases:    []Case{fleetCase("cost", 1), slowly(fleetCase("cost", fleetNodes))},
	}
	for _, policy := range rivals {
		e.Cases = append(e.Cases, fleetCase(policy, fleetNodes))
	}
	e.Cases = append(e.Cases, sharedMap())
	e.Show = func(page *Page, r *Results) {
		t := &report.Table{Header: []string{"policy", "nodes", "cached share", "load CoV", servedCoV.Name, ttftMean.Name, kept.Name, peerRate.Name}}
		row := func(name string, c Case) {
			s, nodes := r.Of(c), c.Config.Nodes
			t.Add(name, nodes, s.Cell(hitRate), s.Cell(loadCoV), s.Cell(servedCoV), s.Cell(ttftMean), s.Cell(kept), s.Cell(peerRate))
		}
		row("cost", fleetCase("cost", 1))
		row("cost, "+slowNewsSays, slowly(fleetCase("cost", fleetNodes)))
		for _, policy := range rivals {
			row(policy+", nothing shared", fleetCase(policy, fleetNodes))
		}
		row("smg, map shared after 50 ms", sharedMap())
		for _, p := range smgPublished {
			t.Add("SMG's own figures: "+p.design, fleetNodes, decimals3(p.cached), "", decimals3(p.cov), "", "", "")
		}
		page.Say("%s; profile 8b, one seed.", workloads["fleet"].says)
		page.Table(t)
		one, many := r.Of(fleetCase("cost", 1)), r.Of(slowly(fleetCase("cost", fleetNodes)))
		share := many.Mean(hitRate) / one.Mean(hitRate)
		page.Judge(verdict(atLeast(share, keptCached), "at least 0.9 of the cached tokens that one exact node gets",
			"eight nodes in front of 240 backends, "+slowNewsSays+", get %s of them", decimals3(share)))
		page.Judge(againstOne("eight nodes in front of 240 backends, "+slowNewsSays+",", one, many)...)
	}
	return e
}
