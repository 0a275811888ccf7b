package study

import (
	"kvca/bench/report"
	"kvca/bench/sim"
)

// pressed are the places where caches are short: agents whose sessions grow for
// hours, and prefixes that take 73 % of the fleet's caches at a rate that it serves.
func pressed() []Case {
	return []Case{place{"agent", "8b"}.copes("cost"), place{"agent", "70b"}.copes("cost"), ladder73(10), ladder73(14)}
}

// ladder73 is that case at one rate, for a minute or so, on a fleet that begins idle.
func ladder73(rate float64) Case {
	return Case{
		Source: Source{Workload: "ladder-73", Rate: rate, Limit: max(int(60*rate), 480)},
		Config: sim.Config{Policy: "cost", Backends: 8, Profile: profile("32b")},
	}
}

// informedAs is the case under a policy that goes by what engines publish.
func (c Case) informedAs(policy string) Case {
	c.Config.Policy, c.Config.Precise = policy, true
	return c
}

func (c Case) as(policy string) Case {
	c.Config.Policy = policy
	return c
}

// preciseOracle is how far above the oracle the default policy may be with events.
const preciseOracle = 0.05

func precise() Experiment {
	e := Experiment{
		Name:     "precise",
		Question: "Where caches are short, what is it worth that engines tell what they hold?",
	}
	for _, c := range pressed() {
		e.Cases = append(e.Cases, c, c.informedAs("cost"), c.as("oracle"), c.as("llm-d-precise"))
		e.Lesser = append(e.Lesser, c.informedAs("weighted"), c.informedAs("two-phase"))
		if c.Source.Workload != "agent" {
			e.Lesser = append(e.Lesser, c.on(8), c.on(8).informedAs("cost"))
		}
	}
	e.Show = func(page *Page, r *Results) {
		page.Say("Engines publish each step's changes; every node has them one hop later. The oracle sees the caches themselves, and exact loads. " +
			"`weighted` and `two-phase` go by the events too; eight nodes are 1 ms apart.")
		t := &report.Table{Header: []string{
			"workload", "profile", "requests/s", "belief, mean TTFT, s", "events", "against belief", "hits: belief", "events",
			"oracle", "events against it", "", "`weighted`", "`two-phase`", "llm-d-precise", "8 nodes: belief", "8 nodes: events",
		}}
		var judged []Judgment
		worst := 0.0
		for _, c := range pressed() {
			belief, events, oracle := r.Of(c), r.Of(c.informedAs("cost")), r.Of(c.as("oracle"))
			above, _, _ := events.change(oracle, ttftMean)
			j := atMost(above, preciseOracle)
			judged, worst = append(judged, j), max(worst, above)
			t.Add(c.Source.Workload, c.Config.Profile.Name, digits3(c.Source.Rate), belief.Cell(ttftMean), events.Cell(ttftMean), changeCell(events, belief),
				belief.Cell(hitRate), events.Cell(hitRate), oracle.Cell(ttftMean), changeCell(events, oracle), j,
				r.Of(c.informedAs("weighted")).Cell(ttftMean), r.Of(c.informedAs("two-phase")).Cell(ttftMean), r.Of(c.as("llm-d-precise")).Cell(ttftMean),
				r.Of(c.on(8)).Cell(ttftMean), r.Of(c.on(8).informedAs("cost")).Cell(ttftMean))
		}
		page.Table(t)
		page.Judge(verdict(all(judged...), "with events, mean TTFT within 5 % of the oracle's under cache pressure", "at most %s above it", percent(worst)))
	}
	return e
}
