package study

import (
	"fmt"
	"strconv"
	"time"

	"kvca/bench/report"
	"kvca/bench/sim"
	"kvca/router"
)

// knob is one constant, and the values that are tried of it while the others stay.
type knob struct {
	name   string
	values []setting
}

type setting struct {
	label string
	set   func(*sim.Config)
}

func settings[T any](set func(*sim.Config, T), label func(T) string, values ...T) []setting {
	list := make([]setting, len(values))
	for i, v := range values {
		list[i] = setting{label(v), func(c *sim.Config) { set(c, v) }}
	}
	return list
}

func number(v float64) string       { return strconv.FormatFloat(v, 'g', -1, 64) }
func moment(d time.Duration) string { return d.String() }

func knobs() []knob {
	return []knob{
		{"novel factor k", settings(func(c *sim.Config, v float64) { c.Router.Cost.NovelFactor = v }, number, 2, 3, 4, 6, 8)},
		{"fan half c, per KiB", settings(func(c *sim.Config, v float64) { c.Router.Cost.FanHalf = v }, number, 0.25, 0.5, 1, 2, 4)},
		{"evict e", settings(func(c *sim.Config, v float64) { c.Router.Cost.Evict = v }, number, 0, 0.05, 0.1, 0.2)},
		{"queue, bytes", settings(func(c *sim.Config, v float64) { c.Router.Cost.Queue = v }, number, 50_000, 200_000, 1_000_000, 1e12)},
		{"crowd, bytes", settings(func(c *sim.Config, v float64) { c.Router.Cost.Crowd = v }, number, 0, 2048, 8192)},
		{"mirror share", settings(func(c *sim.Config, v float64) { c.Router.MirrorShare = v }, number, 0.8, 0.9, 0.95, 1, 1.1)},
		{"move, bytes", settings(func(c *sim.Config, v float64) { c.Router.Cost.Move = v }, number, 0, 6144, 16384)},
		{"pressure", settings(func(c *sim.Config, v time.Duration) { c.Router.Cost.Pressure = v }, moment,
			300*time.Second, 1000*time.Second, 3000*time.Second)},
		{"active request, bytes", settings(func(c *sim.Config, v float64) { c.Router.ActiveBytes = v }, number, 128, 512, 2048)},
		{"expected above, blocks", []setting{
			{"0", func(c *sim.Config) { c.Router.ExpectAbove = 0 }},
			{"2", func(c *sim.Config) { c.Router.ExpectAbove = 2 }},
			{"16", func(c *sim.Config) { c.Router.ExpectAbove = 16 }},
			{"known prompts never", func(c *sim.Config) { c.Router.ExpectAbove = 1 << 30 }},
		}},
		{"TTL", settings(func(c *sim.Config, v time.Duration) { c.TTL = v }, moment, time.Minute, 10*time.Minute, time.Hour)},
		{"block size, bytes", settings(func(c *sim.Config, v int) { c.Router.BlockSize = v }, strconv.Itoa, 256, 512, 1024, 2048)},
		{"cache sizes", []setting{
			{"known", func(c *sim.Config) { c.Mirror = sim.Known }},
			{"unknown", func(c *sim.Config) { c.Mirror = sim.Unknown }},
		}},
	}
}

// swept are the workloads that constants are tried on, each on one profile, so
// that all profiles come up.
var swept = []place{
	{"conversation", "70b"}, {"agent", "32b"}, {"tenants-20", "8b"}, {"tenants-200", "70b"}, {"tenants-50", "32b"},
}

var sweptLoads = []struct {
	name  string
	share float64
}{{"half", halfLoad}, {"copes", copes}, {"above", above}}

// sweptRequests are few: the many workloads make up for it.
func sweptRequests(p place) int {
	switch p.workload {
	case "agent":
		return 3000
	case "conversation":
		return 2000
	}
	return 0
}

func (s setting) at(p place, share float64) Case {
	c := p.under("cost", share).limited(sweptRequests(p))
	c.Config.Router = router.DefaultConfig()
	if s.set != nil {
		s.set(&c.Config)
	}
	return c
}

func defaults() Experiment {
	e := Experiment{
		Name: "defaults", Seeds: 1,
		Question: "Is any constant better set to another value, over workloads, profiles and loads?",
	}
	eachColumn(func(p place, _ string, share float64) {
		e.Cases = append(e.Cases, setting{}.at(p, share))
		for _, k := range knobs() {
			for _, s := range k.values {
				e.Cases = append(e.Cases, s.at(p, share))
			}
		}
	})
	e.Show = func(page *Page, r *Results) {
		page.Say("Mean TTFT relative to the defaults, one constant changed at a time; below 1 is better. One seed; the first %d requests of the conversation trace, %d of the agents'. "+
			"Loads are %v, %v and %v of saturation. The geometric mean of the row is last, the best of it bold; a row that is the default is marked with a star.",
			sweptRequests(swept[0]), sweptRequests(swept[1]), halfLoad, copes, above)
		for _, k := range knobs() {
			showKnob(page, r, k)
		}
	}
	return e
}

func eachColumn(do func(p place, load string, share float64)) {
	for _, p := range swept {
		for _, l := range sweptLoads {
			do(p, l.name, l.share)
		}
	}
}

func showKnob(page *Page, r *Results, k knob) {
	t := &report.Table{Header: []string{k.name}}
	eachColumn(func(p place, load string, _ float64) { t.Header = append(t.Header, p.String()+", "+load) })
	t.Header = append(t.Header, "geometric mean")
	means, best := make([]float64, len(k.values)), -1
	rows := make([][]any, len(k.values))
	own := -1
	for i, s := range k.values {
		values := relative(r, s)
		means[i] = geometricMean(values)
		if isFigure(means[i]) && (best < 0 || means[i] < means[best]) {
			best = i
		}
		label := s.label
		if s.isDefault() {
			label, own = label+" *", i
		}
		rows[i] = append(rows[i], label)
		for _, v := range values {
			rows[i] = append(rows[i], decimals3(v))
		}
	}
	for i, row := range rows {
		mean := decimals3(means[i])
		if i == best {
			mean = "**" + mean + "**"
		}
		t.Add(append(row, mean)...)
	}
	page.Head(k.name)
	page.Table(t)
	if best >= 0 && own >= 0 {
		page.Say("%s", knobSentence(k, best, own, means))
	}
}

// knobSentence says how the default stands beside the best.
func knobSentence(k knob, best, own int, means []float64) string {
	if best == own {
		return fmt.Sprintf("No other value of %s is better on the whole than the default, %s.", k.name, k.values[own].label)
	}
	edge := ""
	if best == len(k.values)-1 {
		edge = " No larger value was tried."
	}
	return fmt.Sprintf("On the whole %s at %s changes mean TTFT by %s against the default, %s.%s",
		k.name, k.values[best].label, percent(means[best]/means[own]-1), k.values[own].label, edge)
}

// relative is a setting's mean TTFT over the default's of the same seeds, column by column.
func relative(r *Results, s setting) []float64 {
	var values []float64
	eachColumn(func(p place, _ string, share float64) {
		_, change, _ := r.Of(s.at(p, share)).change(r.Of(setting{}.at(p, share)), ttftMean)
		values = append(values, 1+change) // of the one seed that both have
	})
	return values
}

// isDefault is whether a setting changes nothing.
func (s setting) isDefault() bool {
	p := swept[0]
	return job{s.at(p, copes), 0}.fingerprint(nil) == job{setting{}.at(p, copes), 0}.fingerprint(nil)
}
