package study

import (
	"fmt"

	"kvca/bench/report"
	"kvca/bench/sim"
)

// published is a figure of llm-d-kv-cache, benchmarking/37-capacity and
// 73-capacity: seconds to the first token under one policy.
type published struct {
	policy  string // ours that comes nearest
	seconds float64
}

// rung is a ladder at a rate.
type rung struct {
	workload, profile string
	backends          int
	rate              float64
	metric            Metric
	published         []published // best first
}

// rungs have llm-d's figures beside them. Those of the 73 % case are over all its
// rates together; its rate here is one that its precise routing serves.
var rungs = []rung{
	{"ladder-37", "70b", 4, 3, ttftMean, []published{{"llm-d-precise", .144}, {"random", .852}, {"least-request", 1.44}}},
	{"ladder-37", "70b", 4, 4, ttftMean, []published{{"llm-d-precise", .182}, {"least-request", 6.4}, {"random", 9.5}}},
	{"ladder-37", "70b", 4, 8, ttftMean, []published{{"llm-d-precise", .199}, {"random", 39}, {"least-request", 39}}},
	{"ladder-37", "70b", 4, 15, ttftMean, []published{{"llm-d-precise", .210}, {"random", 61}, {"least-request", 63}}},
	{"ladder-73", "32b", 8, 20, ttftP90, []published{{"llm-d-precise", .54}, {"llm-d", 31}, {"random", 93}, {"least-request", 95}}},
}

// requests are of a minute, which is in the middle of llm-d's stages of 20 to 120 s,
// but enough that most prompts have come before. An overloaded fleet's queue grows
// as long as the stage lasts, so that is what such figures measure.
func (g rung) requests() int { return max(int(60*g.rate), 480) }

var climbers = []string{"cost", "llm-d-precise", "llm-d", "random", "least-request"}

func (g rung) under(policy string) Case {
	return Case{
		Source: Source{Workload: g.workload, Rate: g.rate, Limit: g.requests()},
		Config: sim.Config{Policy: policy, Backends: g.backends, Profile: profile(g.profile)},
	}
}

// near is by how much two published figures differ at most where their order says
// nothing: both are overloaded, or have one result in two words.
const near = 2.0

// ordered judges whether policies come out in the published order. Pairs that are
// near each other there may come in either.
func ordered(list []published, of func(policy string) float64) Judgment {
	var judged []Judgment
	for i, better := range list {
		for _, worse := range list[i+1:] {
			if worse.seconds > near*better.seconds {
				judged = append(judged, atMost(of(better.policy), of(worse.policy)))
			}
		}
	}
	return all(judged...)
}

func ladders() Experiment {
	e := Experiment{Name: "ladders", Question: "Does the simulator put policies in the order of llm-d's published figures?"}
	for _, g := range rungs {
		for _, policy := range climbers {
			e.Cases = append(e.Cases, g.under(policy))
		}
	}
	e.Show = func(page *Page, r *Results) {
		page.Say("Four backends 70b and eight 32b; a minute of requests, at least 480. What llm-d published is behind the slash. Its rates went up one after the "+
			"other, so queues and caches of one ran into the next; here each rate begins with an idle fleet. Two of its figures of which one is not %.0f times the "+
			"other may come in either order.", near)
		t := &report.Table{Header: append(append([]string{"case", "requests/s", "figure"}, climbers...), "order")}
		var judged []Judgment
		for _, g := range rungs {
			j := ordered(g.published, func(policy string) float64 { return r.Of(g.under(policy)).Mean(g.metric) })
			judged = append(judged, j)
			row := []any{g.workload, g.rate, g.metric.Name}
			for _, policy := range climbers {
				row = append(row, r.Of(g.under(policy)).Cell(g.metric)+g.beside(policy))
			}
			t.Add(append(row, j)...)
		}
		page.Table(t)
		agree := 0
		for _, j := range judged {
			if j == Kept {
				agree++
			}
		}
		page.Judge(verdict(all(judged...), "the order of llm-d's published figures", "the order agrees in %d of %d cases", agree, len(judged)))
	}
	return e
}

func (g rung) beside(policy string) string {
	for _, p := range g.published {
		if p.policy == policy {
			return fmt.Sprintf(" / %v", p.seconds)
		}
	}
	return ""
}
