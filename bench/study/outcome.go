package study

import (
	"math"
	"strings"

	"kvca/bench/sim"
)

// Outcome is what is kept of a run.
type Outcome struct {
	// Fingerprint and Build are what the run was of, and which program ran it.
	Fingerprint string `json:"fingerprint"`
	Build       string `json:"build"`
	// Case is the run in words, for people who read the file.
	Case   string     `json:"case"`
	Result sim.Result `json:"result"`
	// Quantiles are times to the first token in seconds, at equal steps of their
	// share from 0 to 1.
	Quantiles []float64 `json:"quantiles,omitempty"`
}

// quantileSteps is how finely a distribution is kept; that is all of a plot's.
const quantileSteps = 200

// quantiles picks them from ascending values.
func quantiles(sorted []float64) []float64 {
	if len(sorted) == 0 {
		return nil
	}
	list := make([]float64, quantileSteps+1)
	for i := range list {
		at := float64(i) / quantileSteps * float64(len(sorted)-1)
		list[i] = sorted[int(math.Round(at))]
	}
	return list
}

// Metric is a figure of a result.
type Metric struct {
	Name string // with its unit, as an axis or a column says it
	Of   func(*sim.Result) float64
	Form func(float64) string
}

// quantity is the name without the unit.
func (m Metric) quantity() string {
	name, _, _ := strings.Cut(m.Name, ",")
	return name
}

// The figures that reports show.
var (
	ttftMean  = Metric{"mean TTFT, s", func(r *sim.Result) float64 { return r.TTFT.Mean }, digits3}
	ttftP90   = Metric{"p90 TTFT, s", func(r *sim.Result) float64 { return r.TTFT.P90 }, digits3}
	ttftP99   = Metric{"p99 TTFT, s", func(r *sim.Result) float64 { return r.TTFT.P99 }, digits3}
	hitRate   = Metric{"hit rate", func(r *sim.Result) float64 { return r.HitRate }, decimals3}
	maxMean   = Metric{"max/mean computed", func(r *sim.Result) float64 { return r.MaxMeanComputed }, decimals2}
	loadCoV   = Metric{"load CoV", func(r *sim.Result) float64 { return r.LoadCoV }, decimals3}
	servedCoV = Metric{"CoV of requests served", func(r *sim.Result) float64 { return r.ServedCoV }, decimals3}
	peerRate  = Metric{"kB/s sent by a node", func(r *sim.Result) float64 { return r.PeerBytesPerS / 1000 }, digits3}
	kept      = Metric{"follow-ups kept", func(r *sim.Result) float64 { return r.Kept }, decimals3}
)

var degraded = Metric{"decisions without the owner's word", func(r *sim.Result) float64 { return float64(r.Degraded) }, decimals(0)}
