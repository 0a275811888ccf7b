package study

import (
	"fmt"
	"math"
	"strings"

	"kvca/bench/report"
	"kvca/bench/sim"
	"kvca/bench/trace"
)

// climb is one of llm-d's published cases: a ladder of rates under several
// policies. Source: llm-d/llm-d-kv-cache, benchmarking/37-capacity and 73-capacity.
type climb struct {
	workload, profile string
	backends          int
	stages            []trace.Stage // the first is a warm-up
	published         []published
}

// published is what llm-d measured under one policy, rate by rate: the time within
// which nine of ten first tokens came, and tokens of answers a second.
type published struct {
	policy    string // ours that is set up as theirs was
	p90       []float64
	tokensPer []float64
}

var climbs = []climb{
	{"climb-37", "70b", 4, trace.Stages37, []published{
		{
			"llm-d-37-precise",
			[]float64{0.201, 0.277, 0.281, 0.281, 0.28, 0.282, 0.282, 0.288, 0.29},
			[]float64{2580, 3367, 3940, 4666, 5676, 6457, 7062, 7807, 9295},
		},
		{
			"llm-d-37-default",
			[]float64{0.399, 0.7, 0.9, 0.794, 1.11, 1.309, 1.199, 1.9, 43.568},
			[]float64{2596, 3386, 3912, 4604, 5530, 6022, 6667, 6401, 6748},
		},
		{
			"random",
			[]float64{1.502, 23.48, 41.795, 62.49, 78.656, 83.002, 98.661, 139.286, 176.975},
			[]float64{2518, 2734, 2647, 2947, 2968, 3120, 3022, 3003, 3099},
		},
		{
			"llm-d-load",
			[]float64{2.4, 16.101, 28.581, 59.389, 73.762, 86.063, 94.109, 114.672, 173.54},
			[]float64{2567, 2974, 3120, 3008, 3090, 3050, 3044, 3106, 3206},
		},
	}},
	{"climb-73", "32b", 8, trace.Stages73, []published{
		{
			"llm-d-73-precise",
			[]float64{0.498, 0.6, 0.4, 0.6, 0.5, 0.583, 0.509, 0.5, 0.488, 0.5, 0.589, 0.6, 0.507, 0.6, 0.6, 0.5},
			[]float64{1219, 3902, 5761, 9184, 9382, 9242, 9222, 9781, 10271, 10055, 10129, 10296, 10285, 10141, 10314, 10497},
		},
		{
			"llm-d-73-estimated",
			[]float64{0.497, 0.499, 0.4, 0.6, 0.7, 0.609, 0.708, 2.459, 43.018, 43.515, 44.93, 46.335, 47.284, 50.108, 49.93, 50.226},
			[]float64{1311, 3842, 5153, 8083, 8416, 8445, 8436, 7444, 8046, 7970, 7695, 7456, 7452, 7101, 7014, 7248},
		},
		{
			"random",
			[]float64{0.82, 1.398, 2.299, 70.273, 78.42, 82.943, 86.182, 91.519, 101.272, 101.142, 101.265, 103.514, 105.004, 104.321, 106.816, 105.988},
			[]float64{1314, 3568, 3791, 4933, 4765, 4781, 4636, 4333, 4774, 4845, 4970, 4783, 4845, 4922, 4764, 4835},
		},
		{
			"llm-d-load",
			[]float64{1.609, 4.124, 7.002, 77.707, 72.972, 85.979, 83.806, 88.086, 100.911, 101.524, 105.884, 105.015, 108.572, 110.681, 113.278, 110.184},
			[]float64{1275, 3607, 3348, 4902, 4786, 4873, 4889, 4661, 4946, 4973, 4724, 4005, 3991, 4672, 3866, 4745},
		},
	}},
}

// under is the whole ladder under one policy. It has no rate of its own.
func (c climb) under(policy string) Case {
	return Case{
		Source: Source{Workload: c.workload, Rate: 1},
		Config: sim.Config{Policy: policy, Backends: c.backends, Profile: profile(c.profile)},
	}
}

// rates are those that figures are of.
func (c climb) rates() []trace.Stage { return c.stages[1:] }

func (c climb) policies() []string {
	var list []string
	for _, p := range c.published {
		list = append(list, p.policy)
	}
	return append(list, "cost")
}

// ofStage are a stage's figures, the warm-up's not counted.
func ofStage(rate int, m Metric, of func(*sim.Stage) float64) Metric {
	m.Of = func(r *sim.Result) float64 {
		if rate+1 >= len(r.Stages) {
			return math.NaN()
		}
		return of(&r.Stages[rate+1])
	}
	return m
}

func stageP90(rate int) Metric {
	return ofStage(rate, ttftP90, func(s *sim.Stage) float64 { return s.TTFT.P90 })
}

func stageTokens(rate int) Metric {
	m := Metric{Name: "tokens of answers a second", Form: decimals(0)}
	return ofStage(rate, m, func(s *sim.Stage) float64 { return s.TokensPerS })
}

// near is by how much two published figures differ at most where their order says
// nothing: both are overloaded, or have one result in two words.
const near = 2.0

// pair is two policies at a rate of which one was published as the better by far.
type pair struct {
	rate          float64
	better, worse string
	outcome       outcomeOfPair
}

type outcomeOfPair int

const (
	unmeasured outcomeOfPair = iota
	inOrder                  // with every seed
	alike                    // seeds differ more than the two policies
	reversed                 // with every seed
)

// beside tells two samples apart by the least and the largest of each over the seeds.
func (s Sample) beside(worse Sample, m Metric) outcomeOfPair {
	low, high := s.Spread(m)
	worseLow, worseHigh := worse.Spread(m)
	switch {
	case len(s) == 0 || len(worse) == 0 || !isFigure(low) || !isFigure(worseLow):
		return unmeasured
	case high < worseLow:
		return inOrder
	case low > worseHigh:
		return reversed
	}
	return alike
}

// ordered judges at one rate whether policies come out in the published order.
// Pairs that are near each other there may come in either.
func (c climb) ordered(rate int, of func(policy string) Sample) []pair {
	var list []pair
	for _, better := range c.published {
		for _, worse := range c.published {
			if worse.p90[rate] > near*better.p90[rate] {
				outcome := of(better.policy).beside(of(worse.policy), stageP90(rate))
				list = append(list, pair{c.rates()[rate].Rate, better.policy, worse.policy, outcome})
			}
		}
	}
	return list
}

func ladders() Experiment {
	e := Experiment{Name: "ladders", Question: "Does the simulator put policies in the order of llm-d's published figures?"}
	for _, c := range climbs {
		for _, policy := range c.policies() {
			e.Cases = append(e.Cases, c.under(policy))
		}
	}
	e.Show = func(page *Page, r *Results) {
		page.Say("llm-d's two published cases as they were run: four backends 70b, eight 32b, its schedulers of September 2025 with the weights of each report, and its load "+
			"generator, inference-perf. That is an open loop within a stage and a closed one over them: a stage sends its requests at their times whatever is under way, and the next "+
			"begins when the last of them is over, so caches run from one stage into the next and queues do not. A warm-up comes first. What llm-d published is behind the slash, of "+
			"every rate; the simulator's figures are of the same rate in the same ladder. Two published figures of which one is not %.0f times the other may come in either order.", near)
		page.Say("Nothing held the clients back: stages of 1,500 requests were sent at the rate that they were meant to have while first tokens took a minute, and what was published as " +
			"tokens a second is those of a stage over all of its time, the last answers' included. (The published time between tokens is half of what it was: the generator counts the " +
			"empty line behind each event as one more. An idle engine's step in the profiles here is taken from it and may be too short; tokens a second, below, say how near they come.)")
		var pairs []pair
		for _, c := range climbs {
			pairs = append(pairs, c.show(page, r)...)
		}
		page.Judge(orderVerdict(pairs))
	}
	return e
}

func (c climb) show(page *Page, r *Results) (pairs []pair) {
	page.Head(workloads[c.workload].says)
	times := &report.Table{Header: append(append([]string{"requests/s"}, c.policies()...), "order")}
	rates := &report.Table{Header: append([]string{"requests/s"}, c.policies()...)}
	for i, stage := range c.rates() {
		here := c.ordered(i, func(policy string) Sample { return r.Of(c.under(policy)) })
		row, tokens := []any{stage.Rate}, []any{stage.Rate}
		for _, policy := range c.policies() {
			s := r.Of(c.under(policy))
			row = append(row, s.Cell(stageP90(i))+c.beside(policy, i, func(p published) []float64 { return p.p90 }))
			tokens = append(tokens, decimals(0)(s.Mean(stageTokens(i)))+c.beside(policy, i, func(p published) []float64 { return p.tokensPer }))
		}
		times.Add(append(row, judgePairs(here))...)
		rates.Add(tokens...)
		pairs = append(pairs, here...)
	}
	page.Say("%s:", ttftP90.Name)
	page.Table(times)
	page.Say("Tokens of answers a second:")
	page.Table(rates)
	page.Say("%s", c.sizes(r))
	c.sayAlike(page, r, pairs)
	return pairs
}

// sayAlike says of policies that come out alike what there was to win.
func (c climb) sayAlike(page *Page, r *Results, pairs []pair) {
	said := map[string]bool{}
	for _, p := range pairs {
		name := fmt.Sprintf("`%s` and `%s`", p.better, p.worse)
		if p.outcome != alike || said[name] {
			continue
		}
		said[name] = true
		page.Say("%s come out alike: at no rate is the hit rate under the one below %s, under the other below %s. A prompt that the warm-up has placed is neither moved nor lost, so "+
			"better knowledge has nothing to win. What llm-d's fleet lost there under the other is in nothing that its report names: the list of 31,250 blocks holds all that it is "+
			"told, and the prefix weighs as much as queue and cache together.",
			name, decimals3(c.leastHits(r, p.better)), decimals3(c.leastHits(r, p.worse)))
	}
}

func (c climb) leastHits(r *Results, policy string) float64 {
	least := math.Inf(1)
	for i := range c.rates() {
		least = min(least, r.Of(c.under(policy)).Mean(ofStage(i, hitRate, func(s *sim.Stage) float64 { return s.HitRate })))
	}
	return least
}

// judgePairs is kept where all are, and where there is nothing to tell apart.
func judgePairs(list []pair) Judgment {
	judged := []Judgment{Kept}
	for _, p := range list {
		switch p.outcome {
		case unmeasured:
			judged = append(judged, Unknown)
		case alike, reversed:
			judged = append(judged, Broken)
		}
	}
	return all(judged...)
}

func (c climb) beside(policy string, rate int, of func(published) []float64) string {
	for _, p := range c.published {
		if p.policy == policy {
			return fmt.Sprintf(" / %v", of(p)[rate])
		}
	}
	return ""
}

// sizes says how far from the published figures the simulator's are.
func (c climb) sizes(r *Results) string {
	var parts []string
	for _, p := range c.published {
		times, tokens := make([]float64, 0, len(p.p90)), make([]float64, 0, len(p.p90))
		low, high := math.Inf(1), math.Inf(-1)
		for i := range p.p90 {
			s := r.Of(c.under(p.policy))
			t, k := s.Mean(stageP90(i)), s.Mean(stageTokens(i))
			times, tokens = append(times, t/p.p90[i]), append(tokens, k/p.tokensPer[i])
			low, high = min(low, p.p90[i]-t), max(high, p.p90[i]-t)
		}
		part := fmt.Sprintf("`%s` %s and %s", p.policy, digits3(geometricMean(times)), digits3(geometricMean(tokens)))
		if strings.HasSuffix(p.policy, "precise") {
			part += fmt.Sprintf(" (published %s to %s s more)", digits3(low), digits3(high))
		}
		parts = append(parts, part)
	}
	return "Simulated over published, p90 and tokens a second, geometric means over the rates: " + strings.Join(parts, "; ") + ". " +
		"What precise routing took longer in the world hardly depends on the rate: it is the way of a long prompt through tokenisers and HTTP twice, " +
		"which here costs the same for prompts of any length, and is the same for all policies."
}

// orderVerdict says how many pairs come out in order, and which don't.
func orderVerdict(list []pair) Verdict {
	count := map[outcomeOfPair]int{}
	others := map[outcomeOfPair]*grouped{alike: {}, reversed: {}}
	for _, p := range list {
		count[p.outcome]++
		if g := others[p.outcome]; g != nil {
			g.add(fmt.Sprintf("`%s` and `%s`", p.better, p.worse), p.rate)
		}
	}
	found := fmt.Sprintf("of %d pairs of policies at a rate, %d come out in order with every seed", len(list), count[inOrder])
	if n := count[alike]; n > 0 {
		found += fmt.Sprintf(", %d alike (%v)", n, others[alike])
	}
	if n := count[reversed]; n > 0 {
		found += fmt.Sprintf(", %d the other way about (%v)", n, others[reversed])
	}
	return verdict(judgePairs(list), "the order of llm-d's published figures", "%s", found)
}

// grouped are rates under the names of pairs, in the order of their coming.
type grouped struct {
	names []string
	rates map[string][]string
}

func (g *grouped) add(name string, rate float64) {
	if g.rates == nil {
		g.rates = map[string][]string{}
	}
	if g.rates[name] == nil {
		g.names = append(g.names, name)
	}
	g.rates[name] = append(g.rates[name], number(rate))
}

func (g *grouped) String() string {
	var parts []string
	for _, name := range g.names {
		parts = append(parts, name+" at "+strings.Join(g.rates[name], ", "))
	}
	return strings.Join(parts, "; ")
}
