package study

import (
	"fmt"
	"slices"

	"kvca/bench/report"
	"kvca/bench/rival"
	"kvca/router"
)

// policies are all that compete: the product's default first, then its others,
// then other routers' rules.
func policies() []string {
	list := []string{"cost"}
	for _, name := range append(router.PolicyNames(), rival.Names()...) {
		if name != "cost" && name != "weighted" { // weighted is llm-d's rule on the product's map
			list = append(list, name)
		}
	}
	return list
}

// contenders are the policies that come into question as the best, and what they
// are compared with: they have a run per seed, the others one.
var contenders = []string{
	"cost", "two-phase", "oracle", "smg", "llm-d", "llm-d-no-hit-lru", "llm-d-affinity", "llm-d-precise", "dynamo", "dynamo-events", "aibrix",
	"bounded-hash-100",
}

// informed are the rules that see what is in engines' caches at every moment, as
// from events without a delay. The default policy has learned what it knows.
var informed = []string{"llm-d-precise", "dynamo-events"}

// unopposed are the policies that are no opponents: ours, and one that sees what
// no gateway can.
func unopposed(policy string) bool {
	return slices.Contains([]string{"cost", "two-phase", "oracle"}, policy)
}

// places are where all policies compete.
func places() []place {
	return []place{
		{"conversation", "8b"},
		{"conversation", "32b"},
		{"conversation", "70b"},
		{"agent", "8b"},
		{"agent", "32b"},
		{"agent", "70b"},
		{"tenants-1", "8b"},
		{"tenants-20", "8b"},
		{"tenants-20", "32b"},
		{"tenants-20", "70b"},
		{"tenants-200", "70b"},
		{"tenants-1000", "70b"},
		{"tenants-50", "32b"},
	}
}

// What is promised of the default policy where the fleet copes.
const (
	belowOpponent = 0.15
	aboveOracle   = 0.10
	aboveOracleOf = 0.25 // agent sessions, without events
	mostUneven    = 1.10
)

func oracleBound(p place) float64 {
	if p.workload == "agent" {
		return aboveOracleOf
	}
	return aboveOracle
}

func opponents() Experiment {
	e := Experiment{
		Name:     "opponents",
		Question: "Where the fleet copes, how long do clients wait for a first token under each policy?",
	}
	for _, p := range places() {
		if thrash(p) {
			e.Cases = append(e.Cases, p.copes("cost").informedAs("cost"))
		}
		for _, policy := range policies() {
			if slices.Contains(contenders, policy) {
				e.Cases = append(e.Cases, p.copes(policy))
			} else {
				e.Lesser = append(e.Lesser, p.copes(policy))
			}
		}
	}
	e.Show = func(page *Page, r *Results) {
		page.Say("%d backends, one node, %.0f %% of the rate that saturates the default policy. Opponents are all but `cost` and `two-phase`, which are "+
			"ours, and `oracle`, which sees true caches and exact loads. `llm-d-precise` and `dynamo-events` see true caches too, as from events without a delay. Figures are means over seeds, with the least and the largest in brackets; "+
			"policies without brackets in the tables of places had one seed.", backends, 100*copes)
		showContest(page, r)
		for _, p := range places() {
			showPlace(page, r, p)
		}
	}
	return e
}

// contest is how the default policy did at a place.
type contest struct {
	place
	cost, oracle Sample
	all, blind   opponent // the best of all, and of those that see no caches
	above        float64  // the oracle
	uneven       float64
}

// opponent is the best of several, and how far the default policy is above it.
type opponent struct {
	Sample
	name  string
	above float64
}

func bestAt(r *Results, p place, cost Sample, among func(policy string) bool) opponent {
	best := opponent{name: absent}
	for _, policy := range policies() {
		s := r.Of(p.copes(policy))
		if unopposed(policy) || !among(policy) || len(s) == 0 {
			continue
		}
		if len(best.Sample) == 0 || s.Mean(ttftMean) < best.Mean(ttftMean) {
			best.Sample, best.name = s, policy
		}
	}
	best.above, _, _ = cost.change(best.Sample, ttftMean)
	return best
}

func contestAt(r *Results, p place) contest {
	c := contest{place: p, cost: r.Of(p.copes("cost")), oracle: r.Of(p.copes("oracle"))}
	c.all = bestAt(r, p, c.cost, func(string) bool { return true })
	c.blind = bestAt(r, p, c.cost, func(policy string) bool { return !slices.Contains(informed, policy) })
	c.above, _, _ = c.cost.change(c.oracle, ttftMean)
	c.uneven = c.cost.Mean(maxMean)
	return c
}

// The promises, judged at a place.
func againstAll(c contest) (float64, Judgment) {
	return c.all.above, atMost(c.all.above, -belowOpponent)
}

func againstBlind(c contest) (float64, Judgment) {
	return c.blind.above, atMost(c.blind.above, -belowOpponent)
}

func againstOracle(c contest) (float64, Judgment) {
	return c.above, atMost(c.above, oracleBound(c.place))
}
func balanced(c contest) (float64, Judgment) { return c.uneven, atMost(c.uneven, mostUneven) }

func showContest(page *Page, r *Results) {
	t := &report.Table{Header: []string{
		"workload", "profile", "`cost`, mean TTFT, s", "best without events", "its mean TTFT, s", "`cost` against it", "", "the oracle against it",
		"best opponent", "its mean TTFT, s", "`cost` against it", "", "against the oracle", "", "max/mean computed", "",
	}}
	var list []contest
	for _, p := range places() {
		c := contestAt(r, p)
		list = append(list, c)
		row := []any{p.workload, p.profile, c.cost.Cell(ttftMean)}
		row = append(row, c.blind.name, c.blind.Cell(ttftMean), changeCell(c.cost, c.blind.Sample), judgment(c, againstBlind), changeCell(c.oracle, c.blind.Sample))
		row = append(row, c.all.name, c.all.Cell(ttftMean), changeCell(c.cost, c.all.Sample), judgment(c, againstAll))
		row = append(row, changeCell(c.cost, c.oracle), judgment(c, againstOracle), c.cost.Cell(maxMean), judgment(c, balanced))
		t.Add(row...)
	}
	page.Head("The default policy against the best of the others")
	page.Table(t)
	sayWhyNot(page, r, list)
	page.Judge(
		tally("mean TTFT at least 15 % below the best opponent's, of those that see no engine's cache", list, againstBlind, percent),
		tally("mean TTFT at least 15 % below the best opponent's", list, againstAll, percent),
		tally("mean TTFT at most 10 % above the oracle's, 25 % on agent sessions", list, againstOracle, percent),
		tally("computed tokens of the busiest backend at most 1.10 times the mean", list, balanced, decimals2),
	)
}

func judgment(c contest, of func(contest) (float64, Judgment)) Judgment {
	_, j := of(c)
	return j
}

func changeCell(s, base Sample) string {
	mean, low, high := s.change(base, ttftMean)
	return withSpread(mean, low, high, percent)
}

// tally sums a promise up over places: at how many it is kept, and where it is
// furthest from being so.
func tally(promise string, list []contest, of func(contest) (float64, Judgment), form func(float64) string) Verdict {
	var judged []Judgment
	keptAt, measured := 0, 0
	worst := contest{}
	for _, c := range list {
		v, j := of(c)
		judged = append(judged, j)
		if j == Unknown {
			continue
		}
		measured++
		if j == Kept {
			keptAt++
		}
		if w, _ := of(worst); measured == 1 || v > w {
			worst = c
		}
	}
	if measured == 0 {
		return verdict(Unknown, promise, "no result")
	}
	value, _ := of(worst)
	found := fmt.Sprintf("at %d of %d places; worst is %s at %v", keptAt, measured, form(value), worst.place)
	return verdict(all(judged...), promise, "%s", found)
}

func showPlace(page *Page, r *Results, p place) {
	t := &report.Table{Header: []string{"policy", ttftMean.Name, ttftP90.Name, ttftP99.Name, hitRate.Name, maxMean.Name, loadCoV.Name}}
	for _, policy := range policies() {
		s := r.Of(p.copes(policy))
		if len(s) == 0 {
			continue
		}
		row := []any{policy}
		for _, m := range []Metric{ttftMean, ttftP90, ttftP99, hitRate, maxMean, loadCoV} {
			row = append(row, s.Cell(m))
		}
		t.Add(row...)
	}
	page.Head(p.String())
	page.Say("%s; rate %s.", workloads[p.workload].says, digits3(p.at(copes).Rate))
	page.Table(t)
}
