package study

import (
	"math"

	"kvca/bench/report"
)

// shares of the present constants that are tried.
var shares = []float64{0.2, 0.4, 0.55, 0.7, 0.85, 1, 1.15, 1.35, 1.6, 2, 2.6}

// knee is how many times the mean TTFT at the lowest load a place is called
// saturated at.
const knee = 5

// saturation finds the constants of places.
func saturation() Experiment {
	e := Experiment{
		Name: "saturation", Extra: true, Seeds: 1,
		Question: "At which rate is each workload's fleet saturated under the default policy?",
	}
	for _, p := range places() {
		for _, share := range shares {
			e.Cases = append(e.Cases, p.under("cost", share))
		}
	}
	e.Show = func(page *Page, r *Results) {
		t := &report.Table{Header: []string{"place", "constant", "rate at the knee"}}
		for _, share := range shares {
			t.Header = append(t.Header, digits3(share))
		}
		for _, p := range places() {
			var rates, times []float64
			row := []any{p, saturates[p], ""}
			for _, share := range shares {
				mean := r.Of(p.under("cost", share)).Mean(ttftMean)
				rates, times = append(rates, share*saturates[p]), append(times, mean)
				row = append(row, digits3(mean))
			}
			row[2] = digits3(crossing(rates, times, knee*times[0]))
			t.Add(row...)
		}
		page.Say("Mean TTFT in seconds at shares of the present constant, and where it is %d times that of the lowest.", knee)
		page.Table(t)
	}
	return e
}

// crossing is where values, over rising xs, first reach a level: between two of
// them by their logarithms; not a number where they don't.
func crossing(xs, values []float64, level float64) float64 {
	for i := 1; i < len(xs); i++ {
		low, high := values[i-1], values[i]
		if low < level && high >= level {
			share := math.Log(level/low) / math.Log(high/low)
			return xs[i-1] * math.Pow(xs[i]/xs[i-1], share)
		}
	}
	return math.NaN()
}
