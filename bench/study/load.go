package study

import "fmt"

// compared are the policies in plots: few enough to tell apart.
var compared = []string{"cost", "two-phase", "smg", "llm-d", "dynamo", "bounded-hash", "oracle"}

// plotted are the places that plots are of: both recorded traces, on the profile
// whose figures are the best founded.
var plotted = []place{{"conversation", "70b"}, {"agent", "70b"}}

// loads are shares of what saturates the default policy.
var loads = []float64{0.4, 0.6, 0.8, 1, 1.2}

// loadRequests are few: what happens above saturation takes long. Of agents there
// must be more sessions than go on side by side.
func loadRequests(p place) int {
	if p.workload == "agent" {
		return 5000
	}
	return crowdRequests
}

func load() Experiment {
	e := Experiment{
		Name:     "load",
		Question: "What does more load do to the time to the first token, to hits and to balance?",
	}
	at := func(p place, policy string, share float64) Case {
		return p.under(policy, share).limited(loadRequests(p))
	}
	for _, p := range plotted {
		for _, share := range loads {
			for _, policy := range compared {
				if policy == "cost" {
					e.Cases = append(e.Cases, at(p, policy, share))
				} else {
					e.Lesser = append(e.Lesser, at(p, policy, share))
				}
			}
		}
	}
	e.Show = func(page *Page, r *Results) {
		page.Say("Load as a share of the rate that saturates the default policy; the first %d requests of the conversation trace, %d of the agents'. Whiskers are the least and the "+
			"largest over seeds; policies without them had one seed.", loadRequests(plotted[0]), loadRequests(plotted[1]))
		for _, m := range []Metric{ttftMean, hitRate, maxMean} {
			f := Figure{Title: m.quantity() + " against load", Columns: len(plotted)}
			for _, p := range plotted {
				f.Panels = append(f.Panels, Panel{
					Title: p.String(), X: "load, share of saturation", Y: m.Name, LogY: m.Name == ttftMean.Name, Ticks: loads,
					Lines: lines(r, compared, loads, m, func(policy string, x float64) Case { return at(p, policy, x) }),
				})
			}
			page.Show("load-"+fileName(m), f)
		}
	}
	return e
}

// lines are one for each name, through what a metric is at each x.
func lines(r *Results, names []string, xs []float64, m Metric, at func(name string, x float64) Case) []Line {
	list := make([]Line, len(names))
	for i, name := range names {
		list[i].Name = name
		for _, x := range xs {
			list[i].Points = append(list[i].Points, r.Of(at(name, x)).Point(x, m))
		}
	}
	return list
}

// fileName is a metric's in the name of a file.
func fileName(m Metric) string {
	switch m.Name {
	case ttftMean.Name:
		return "ttft"
	case hitRate.Name:
		return "hits"
	case maxMean.Name:
		return "balance"
	case loadCoV.Name:
		return "cov"
	}
	return fmt.Sprintf("%x", m.Name)
}
