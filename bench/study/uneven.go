package study

import (
	"fmt"
	"strings"

	"kvca/bench/report"
	"kvca/router"
)

// Fleets in which every second backend is slower: old and new machines side by side.
var (
	uneven = []place{{"conversation", "70b"}, {"agent", "70b"}, {"tenants-200", "70b"}}
	slower = []float64{2, 3}
)

// unevenLoad leaves the slower fleets room.
const unevenLoad = 0.5

// rule is a policy, and what it knows of the backends' speeds.
type rule struct {
	name, policy string
	unweighted   bool
	slow         float64 // the constant, below zero for the default
}

var unevenRules = []rule{
	{name: "cost", policy: "cost", slow: -1},
	{name: "cost, weights not given", policy: "cost", unweighted: true, slow: -1},
	{name: "cost, slow 0", policy: "cost", slow: 0},
	{name: "cost, slow 0.1", policy: "cost", slow: 0.1},
	{name: "cost, slow 0.5", policy: "cost", slow: 0.5},
	{name: "two-phase", policy: "two-phase", slow: -1},
	{name: "llm-d", policy: "llm-d", slow: -1},
	{name: "dynamo", policy: "dynamo", slow: -1},
	{name: "oracle", policy: "oracle", slow: -1},
}

func (u rule) at(p place, times float64) Case {
	c := p.under(u.policy, unevenLoad).limited(enough(p.workload))
	c.Config.Slower, c.Config.Unweighted = times, u.unweighted
	if u.slow >= 0 {
		c.Config.Router = router.DefaultConfig()
		c.Config.Router.Cost.Slow = u.slow
	}
	return c
}

func unevenFleets() Experiment {
	e := Experiment{Name: "uneven", Question: "What if half of the backends are slower?"}
	for _, p := range uneven {
		for _, times := range slower {
			for _, u := range unevenRules {
				e.Lesser = append(e.Lesser, u.at(p, times))
			}
		}
	}
	e.Show = func(page *Page, r *Results) {
		t := &report.Table{Header: []string{"mean TTFT, s"}}
		for _, p := range uneven {
			for _, times := range slower {
				t.Header = append(t.Header, fmt.Sprintf("%v, every second %v times slower", p, times))
			}
		}
		for _, u := range unevenRules {
			row := []any{u.name}
			for _, p := range uneven {
				for _, times := range slower {
					row = append(row, r.Of(u.at(p, times)).Cell(ttftMean))
				}
			}
			t.Add(row...)
		}
		page.Say("%.0f %% of what saturates eight fast backends; one seed. The product's nodes are given the backends' weights unless it says so; the oracle and the others see loads, not speeds.", 100*unevenLoad)
		page.Table(t)
		sayWhatSpeedsAreWorth(page, r)
	}
	return e
}

// sayWhatSpeedsAreWorth says what a rule could gain that measures how quick each backend
// is, in place of being told: at most what the true weights gain.
func sayWhatSpeedsAreWorth(page *Page, r *Results) {
	told, untold := unevenRules[0], unevenRules[1]
	var list []string
	for _, p := range uneven {
		for _, times := range slower {
			if is := r.Of(told.at(p, times)); len(is) > 0 {
				change, _, _ := is.change(r.Of(untold.at(p, times)), ttftMean)
				list = append(list, fmt.Sprintf("%s (%v, %v times)", percent(change), p, times))
			}
		}
	}
	if len(list) > 0 {
		page.Say("Weights are exact here, which is the best that measuring each backend's prefill rate could come to. Against none at all they change mean TTFT by %s: "+
			"what does not win on every workload with exact figures is no default with measured ones, so weights are the operator's to give.", strings.Join(list, ", "))
	}
}
