package sim

import (
	"math"
	"slices"
	"time"
)

// figures are what is counted while a simulation runs.
type figures struct {
	sim     *simulation
	ended   int // requests that are over
	failed  int // of these, those without a whole answer
	retried int // further attempts on another backend

	all, followUps tokens
	kept, turns    int // follow-ups that went where the request before went, of those with one
	ttfts          []float64
	windows        []window
	stages         []stage
	spread         float64 // sum of the samples' coefficients of variation
	samples        int
}

// tokens are prompt tokens, and those of them that engines had cached.
type tokens struct{ prompt, cached int64 }

func (t *tokens) add(j *job) {
	t.prompt += int64(j.request.PromptTokens)
	t.cached += int64(j.cached)
}

func (t *tokens) hitRate() float64 { return ratio(float64(t.cached), float64(t.prompt)) }

type window struct {
	tokens
	ttft     float64
	requests int
}

// stage is what is counted of one stage of a trace that has several.
type stage struct {
	tokens
	ttfts    []float64
	requests int
	output   int64
	// from is when its first request was sent, to when its last was over.
	from, to time.Duration
}

// stageOf is the stage of a request, nil where the trace has but one.
func (f *figures) stageOf(j *job) *stage {
	if len(f.sim.clients.trace.Stages) == 0 {
		return nil
	}
	for len(f.stages) <= j.session.stage {
		f.stages = append(f.stages, stage{from: j.sent})
	}
	return &f.stages[j.session.stage]
}

// over counts a request that has come to its end.
func (f *figures) over(j *job) {
	f.ended++
	s := f.stageOf(j)
	if s == nil {
		return
	}
	s.requests++
	s.from, s.to = min(s.from, j.sent), f.sim.loop.now
	if j.answered {
		s.output += int64(j.request.OutputTokens)
	}
}

// sampleInterval is how often loads are compared.
const sampleInterval = 100 * time.Millisecond

// prefilled counts what an engine says with a request's first token.
func (f *figures) prefilled(j *job) {
	f.all.add(j)
	if j.request.FollowUp {
		f.followUps.add(j)
	}
	served, after := j.session.served, j.request.After
	served[j.index] = j.backend
	if !j.request.FollowUp || after < 0 || served[after] == nobody {
		return
	}
	f.turns++
	if served[after] == j.backend {
		f.kept++
	}
}

// seen counts the first token as the client sees it.
func (f *figures) seen(j *job, ttft time.Duration) {
	f.ttfts = append(f.ttfts, ttft.Seconds())
	if s := f.stageOf(j); s != nil {
		s.add(j)
		s.ttfts = append(s.ttfts, (f.sim.loop.now - j.sent).Seconds())
	}
	if f.sim.cfg.Window == 0 {
		return
	}
	i := int(j.arrived / f.sim.cfg.Window)
	for len(f.windows) <= i {
		f.windows = append(f.windows, window{})
	}
	w := &f.windows[i]
	w.add(j)
	w.ttft += ttft.Seconds()
	w.requests++
}

// sample compares the loads of the engines that could take requests, where there
// is one for each of them on average: with fewer, all differences are chance.
func (f *figures) sample() {
	var active variation
	for _, v := range f.sim.engines.servers {
		if v.up && v.listed {
			active.add(float64(v.active()))
		}
	}
	if active.mean() < 1 {
		return
	}
	f.spread += active.coefficient()
	f.samples++
}

// servedCoV is how differently many requests the engines have served.
func (f *figures) servedCoV() float64 {
	var served variation
	for _, v := range f.sim.engines.servers {
		served.add(float64(v.served))
	}
	return served.coefficient()
}

// variation sums values up to tell how much they differ.
type variation struct{ n, sum, squares float64 }

func (v *variation) add(x float64) { v.n, v.sum, v.squares = v.n+1, v.sum+x, v.squares+x*x }

func (v *variation) mean() float64 { return ratio(v.sum, v.n) }

// coefficient is the standard deviation over the mean.
func (v *variation) coefficient() float64 {
	mean := v.mean()
	return ratio(math.Sqrt(max(ratio(v.squares, v.n)-mean*mean, 0)), mean)
}

// maxMean is the greatest of the engines' computed tokens over their mean.
func (f *figures) maxMean() float64 {
	var most, sum int64
	for _, v := range f.sim.engines.servers {
		most, sum = max(most, v.computed), sum+v.computed
	}
	return ratio(float64(most)*float64(len(f.sim.engines.servers)), float64(sum))
}

// ratio is a/b, 0 where b is 0: a share of nothing.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// distributionOf sorts its argument.
func distributionOf(list []float64) Distribution {
	if len(list) == 0 {
		return Distribution{}
	}
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	slices.Sort(list)
	at := func(q float64) float64 { return list[int(math.Ceil(q*float64(len(list))))-1] }
	return Distribution{Mean: sum / float64(len(list)), P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}
