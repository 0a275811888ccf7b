package study

import (
	"fmt"
	"math"
	"time"

	"kvca/bench/report"
	"kvca/bench/rival"
)

// team is a policy with what its nodes share.
type team struct {
	name, policy string
	sharing      rival.Sharing
	delay        time.Duration
	news         time.Duration // between two writes of the product's nodes, 0 its default
}

// slowNews is the time between two writes of news that promises are made for. The
// product's default is shorter.
const (
	slowNews     = 50 * time.Millisecond
	slowNewsSays = "news each 50 ms"
)

// slowly is a case with news that is told rarely.
func slowly(c Case) Case {
	c.Config.News = slowNews
	return c
}

// sharedDelay is how old what a rival's nodes share is: what the product's deltas
// are, at 50 ms between two of them.
const sharedDelay = 50 * time.Millisecond

func teams() []team {
	list := []team{
		{name: "cost", policy: "cost", delay: networkDelay},
		{name: "cost, " + slowNewsSays, policy: "cost", delay: networkDelay, news: slowNews},
	}
	for _, policy := range []string{"smg", "llm-d", "dynamo"} {
		list = append(list,
			team{name: policy + ", nothing shared", policy: policy, sharing: rival.Nothing, delay: sharedDelay},
			team{name: policy + ", map", policy: policy, sharing: rival.Map, delay: sharedDelay},
			team{name: policy + ", map and loads", policy: policy, sharing: rival.MapAndLoads, delay: sharedDelay},
		)
	}
	return list
}

// crowd is where nodes are compared; its requests are fewer, since nodes cost time.
var crowd = place{"conversation", "70b"}

const crowdRequests = 3000

var nodeCounts = []float64{1, 2, 4, 8}

// counts are on how many nodes the team is looked at: slow news only where it is
// judged, for in plots it lies on the line before.
func (t team) counts() []float64 {
	if t.news != 0 {
		return []float64{nodeCounts[0], nodeCounts[len(nodeCounts)-1]}
	}
	return nodeCounts
}

// on is the team on so many nodes.
func (t team) on(nodes int) Case {
	c := crowd.under(t.policy, copes).limited(crowdRequests).on(nodes)
	if nodes > 1 {
		c.Config.Sharing, c.Config.Delay, c.Config.News = t.sharing, t.delay, t.news
	}
	return c
}

// What is promised of eight nodes against one.
const (
	fewerHits  = 0.01
	longerTTFT = 0.02
	moreCoV    = 0.15
	moreCoVBy  = 0.02
)

func nodes() Experiment {
	e := Experiment{Name: "nodes", Question: "What is lost when many nodes decide instead of one?"}
	for _, t := range teams() {
		for _, n := range t.counts() {
			if t.policy == "cost" {
				e.Cases = append(e.Cases, t.on(int(n)))
			} else {
				e.Lesser = append(e.Lesser, t.on(int(n)))
			}
		}
	}
	e.Show = func(page *Page, r *Results) {
		page.Say("%v at %.0f %% of saturation, the first %d requests, each at a node that chance names. The product's nodes are %v from each other; what "+
			"rivals' nodes share arrives after %v.", crowd, 100*copes, crowdRequests, networkDelay, sharedDelay)
		for _, m := range []Metric{ttftMean, hitRate, loadCoV} {
			panel := Panel{X: "nodes", Y: m.Name, LogX: true, LogY: m.Name == ttftMean.Name, Ticks: nodeCounts}
			for _, t := range teams() {
				if t.news != 0 {
					continue
				}
				panel.Lines = append(panel.Lines, lines(r, []string{t.name}, nodeCounts, m, func(_ string, x float64) Case { return t.on(int(x)) })...)
			}
			page.Show("nodes-"+fileName(m), Figure{Title: m.quantity() + " against nodes", Panels: []Panel{panel}})
		}
		page.Table(nodesTable(r))
		one, eight := r.Of(teams()[0].on(1)), r.Of(teams()[1].on(8))
		page.Judge(againstOne("eight nodes, "+slowNewsSays+",", one, eight)...)
	}
	return e
}

func nodesTable(r *Results) *report.Table {
	t := &report.Table{Header: []string{
		"policy", "hit rate, 1 node", "8 nodes", "mean TTFT, s, 1 node", "8 nodes", "load CoV, 1 node", "8 nodes", "kB/s sent by a node",
	}}
	for _, team := range teams() {
		one, eight := r.Of(team.on(1)), r.Of(team.on(8))
		sent := absent
		if team.policy == "cost" {
			sent = eight.Cell(peerRate)
		}
		t.Add(team.name, one.Cell(hitRate), eight.Cell(hitRate), one.Cell(ttftMean), eight.Cell(ttftMean), one.Cell(loadCoV), eight.Cell(loadCoV), sent)
	}
	return t
}

// againstOne judges many nodes by one.
func againstOne(who string, one, many Sample) []Verdict {
	hits := one.Mean(hitRate) - many.Mean(hitRate)
	longer, _, _ := many.change(one, ttftMean)
	cov, alone := many.Mean(loadCoV), one.Mean(loadCoV)
	return []Verdict{
		verdict(atMost(hits, fewerHits), "hit rate at most 0.01 lower than one node's",
			"%s hit %s, one node %s", who, decimals3(many.Mean(hitRate)), decimals3(one.Mean(hitRate))),
		verdict(atMost(longer, longerTTFT), "mean TTFT at most 2 % longer",
			"%s have %s s, one node %s s: %s", who, digits3(many.Mean(ttftMean)), digits3(one.Mean(ttftMean)), percent(longer)),
		verdict(evenEnough(cov, alone), "load CoV within 15 % or 0.02 of one node's",
			"%s have %s, one node %s", who, decimals3(cov), decimals3(alone)),
	}
}

// evenEnough judges a CoV by that of one node; being more even is no fault.
func evenEnough(cov, alone float64) Judgment {
	return either(atMost(cov, alone*(1+moreCoV)), atMost(cov, alone+moreCoVBy))
}

// What delays and pauses between news are varied over. News lingers a millisecond
// whatever the pause.
var (
	delays = []float64{0.1, 1, 5, 20, 50}
	pauses = delays[1:]
)

func inMilliseconds(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}

func delayed(ms float64) Case {
	c := teams()[0].on(8)
	c.Config.Delay = inMilliseconds(ms)
	return c
}

func paused(ms float64) Case {
	c := teams()[0].on(8)
	c.Config.News = inMilliseconds(ms)
	return c
}

func delay() Experiment {
	e := Experiment{Name: "delay", Question: "How far apart may eight nodes be, and how old their news?"}
	for _, ms := range delays {
		e.Lesser = append(e.Lesser, delayed(ms))
	}
	for _, ms := range pauses {
		e.Lesser = append(e.Lesser, paused(ms))
	}
	e.Show = func(page *Page, r *Results) {
		page.Say("%v at %.0f %% of saturation, the default policy on eight nodes, one seed. The delay is each way, and up to a fifth more or less.", crowd, 100*copes)
		showMilliseconds(page, r, "delay", "Eight nodes, further and further apart", "delay between two nodes, ms", delays, delayed)
		showMilliseconds(page, r, "news", "Eight nodes that tell each other less and less often", "least time between two writes of news, ms", pauses, paused)
	}
	return e
}

func showMilliseconds(page *Page, r *Results, file, title, axis string, milliseconds []float64, at func(ms float64) Case) {
	f := Figure{Title: title, Columns: 3}
	t := &report.Table{Header: []string{axis, ttftMean.Name, hitRate.Name, loadCoV.Name, peerRate.Name, "decisions without the owner's word"}}
	for _, m := range []Metric{ttftMean, hitRate, loadCoV} {
		f.Panels = append(f.Panels, Panel{
			X: axis, Y: m.Name, LogX: true, FromZero: true, Ticks: milliseconds,
			Lines: lines(r, []string{"cost"}, milliseconds, m, func(_ string, x float64) Case { return at(x) }),
		})
	}
	for _, ms := range milliseconds {
		s := r.Of(at(ms))
		t.Add(fmt.Sprint(ms), s.Cell(ttftMean), s.Cell(hitRate), s.Cell(loadCoV), s.Cell(peerRate), s.Cell(degraded))
	}
	page.Show(file, f)
	page.Table(t)
}
