package study

import (
	"fmt"
	"math"
	"time"

	"kvca/bench/report"
	"kvca/bench/sim"
)

// shaken is where things go wrong: where most of a prompt is cached, there is much
// to lose, and a window of 5 s has a hundred requests.
var shaken = place{"tenants-200", "70b"}

const (
	shakenNodes  = 8
	shakenLoad   = 0.15 // five conversations a second: five minutes of them
	shakenWindow = 5 * time.Second
	shakenAt     = 120 * time.Second
	shakenFor    = 30 * time.Second
	// cold is how many windows at the beginning are not plotted: every prompt is new.
	cold = 6
	// smoothed is how many windows a plotted or judged figure is the mean of.
	smoothed = 3
)

// mishap is something that goes wrong.
type mishap struct {
	name string
	with func(*sim.Config)
	// at is when it begins; 0: it goes on all the time.
	at time.Duration
}

var mishaps = []mishap{
	{"a node is lost for 30 s", func(c *sim.Config) {
		c.Disturb = []sim.Disturbance{
			{At: shakenAt, Kind: sim.KillNode, Target: 1},
			{At: shakenAt + shakenFor, Kind: sim.StartNode, Target: 1},
		}
	}, shakenAt},
	{"a backend is lost for 30 s", func(c *sim.Config) {
		c.Disturb = []sim.Disturbance{{At: shakenAt, Kind: sim.RestartBackend, Target: 1, Down: shakenFor}}
	}, shakenAt},
	{"the same, without slow start", func(c *sim.Config) {
		c.Disturb = []sim.Disturbance{{At: shakenAt, Kind: sim.RestartBackend, Target: 1, Down: shakenFor}}
		c.SlowStart = -1
	}, shakenAt},
	{"three of eight backends are removed, and added again after 30 s", func(c *sim.Config) {
		for target := range 3 {
			c.Disturb = append(c.Disturb,
				sim.Disturbance{At: shakenAt, Kind: sim.RemoveBackend, Target: target},
				sim.Disturbance{At: shakenAt + shakenFor, Kind: sim.AddBackend, Target: target})
		}
	}, shakenAt},
	{"1 % of messages are lost", func(c *sim.Config) { c.Loss = 0.01 }, 0},
}

func calm() Case {
	c := shaken.under("cost", shakenLoad).on(shakenNodes)
	c.Config.Window = shakenWindow
	return c
}

func (m mishap) of() Case {
	c := calm()
	m.with(&c.Config)
	return c
}

func disturb() Experiment {
	e := Experiment{
		Name: "disturb", Cases: []Case{calm()},
		Question: "What do the loss of a node, of a backend, or of messages cost, and for how long?",
	}
	for _, m := range mishaps {
		e.Cases = append(e.Cases, m.of())
	}
	e.Show = func(page *Page, r *Results) {
		page.Say("%v at %.0f %% of the saturating rate, eight nodes of the default policy. Windows of %v, each figure the mean of %d of them and of all seeds. What is lost is so at "+
			"%v.", shaken, 100*shakenLoad, shakenWindow, smoothed, shakenAt)
		hits := Figure{Title: "Hit rate over time", Columns: len(mishaps)}
		ttft := Figure{Title: "Mean time to the first token over time", Columns: len(mishaps)}
		t := &report.Table{Header: []string{
			"", "hit rate, whole run", "undisturbed", "deepest dip", "until back within 0.02, s", "mean TTFT, whole run, s", "undisturbed", "highest rise, s", "until back within 10 %, s",
			"failed", "retried",
		}}
		before := r.Of(calm())
		for _, m := range mishaps {
			after := r.Of(m.of())
			hits.Panels = append(hits.Panels, overTime(m.name, hitRate.Name, before, after, windowHits))
			ttft.Panels = append(ttft.Panels, overTime(m.name, ttftMean.Name, before, after, windowTTFT))
			dip := dipOf(smooth(meanWindows(before, windowHits)), smooth(meanWindows(after, windowHits)), m.at, -1, func(float64) float64 { return 0.02 })
			rise := dipOf(smooth(meanWindows(before, windowTTFT)), smooth(meanWindows(after, windowTTFT)), m.at, 1, func(v float64) float64 { return 0.1 * v })
			t.Add(m.name, after.Cell(hitRate), before.Cell(hitRate), decimals3(dip.depth), dip.lasts(m), after.Cell(ttftMean), before.Cell(ttftMean),
				digits3(rise.depth), rise.lasts(m), after.Cell(failed), after.Cell(retried))
		}
		page.Show("disturb-hits", hits)
		page.Show("disturb-ttft", ttft)
		page.Table(t)
	}
	return e
}

var (
	failed  = Metric{"failed", func(r *sim.Result) float64 { return float64(r.Failed) }, decimals(0)}
	retried = Metric{"retried", func(r *sim.Result) float64 { return float64(r.Retried) }, decimals(0)}
)

func windowHits(w sim.Window) float64 { return w.HitRate }
func windowTTFT(w sim.Window) float64 { return w.TTFTMean }

// enoughOf is how many requests of a seed a window must have: the last
// conversations' ends are chance.
const enoughOf = 20

// meanWindows are means over all requests of all seeds, window by window, as long
// as there are enough.
func meanWindows(s Sample, of func(sim.Window) float64) []float64 {
	var means []float64
	for i := 0; ; i++ {
		sum, requests := 0.0, 0
		for _, o := range s {
			if i < len(o.Result.Windows) {
				w := o.Result.Windows[i]
				sum += of(w) * float64(w.Requests)
				requests += w.Requests
			}
		}
		if requests == 0 || requests < enoughOf*len(s) && i > 0 {
			return means
		}
		means = append(means, sum/float64(requests))
	}
}

// smooth takes the mean of each value and those before it, smoothed of them: what
// happens at a time is not seen before it.
func smooth(values []float64) []float64 {
	list := make([]float64, len(values))
	for i := range values {
		from := max(0, i-smoothed+1)
		for _, v := range values[from : i+1] {
			list[i] += v / float64(i+1-from)
		}
	}
	return list
}

// dip is how far a figure is from what it would have been.
type dip struct {
	depth float64
	// last is the time after the beginning at which it is back; not a number where
	// it was never away.
	last float64
	ever bool // it was not back at the end
}

// within is how long after a loss has ended a difference must begin to count as
// its doing.
const within = 30 * time.Second

// dipOf compares windows from a time on; sign is 1 where more is worse, and bound
// is how far off counts as away. A figure is back when it is so for several
// windows on end.
func dipOf(before, after []float64, at time.Duration, sign float64, bound func(float64) float64) dip {
	d := dip{last: math.NaN()}
	n := min(len(before), len(after))
	first := int(at / shakenWindow)
	late := first + int((shakenFor+within)/shakenWindow)
	if at == 0 {
		late = n
	}
	steady := 0
	for i := first; i < n; i++ {
		off := sign * (after[i] - before[i])
		away := off > bound(before[i])
		switch {
		case away && (d.ever || i < late):
			d.ever, steady, d.last = true, 0, float64(i+1-first)*shakenWindow.Seconds()
		case !away && d.ever:
			steady++
			d.ever = steady < smoothed
		}
		if i < late || d.ever {
			d.depth = max(d.depth, off)
		}
	}
	return d
}

func (d dip) lasts(m mishap) string {
	switch {
	case m.at == 0:
		return "" // it goes on all the time
	case math.IsNaN(d.last):
		return "never away"
	case d.ever:
		return fmt.Sprintf("more than %.0f", d.last)
	}
	return fmt.Sprintf("%.0f", d.last)
}

func overTime(title, y string, before, after Sample, of func(sim.Window) float64) Panel {
	line := func(name string, s Sample) Line {
		l := Line{Name: name, Bare: true}
		for i, v := range smooth(meanWindows(s, of)) {
			if i < cold {
				continue
			}
			l.Points = append(l.Points, Point{X: float64(i+1) * shakenWindow.Seconds(), Y: v, Low: v, High: v})
		}
		return l
	}
	return Panel{Title: title, X: "time, s", Y: y, FromZero: y == ttftMean.Name, Lines: []Line{line("disturbed", after), line("undisturbed", before)}}
}
