package study

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvca/bench/report"
	"kvca/bench/sim"
	"kvca/bench/trace"
	"kvca/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write golden files anew")

func outcome(ttft, hits float64) *Outcome {
	return &Outcome{Result: sim.Result{TTFT: sim.Distribution{Mean: ttft}, HitRate: hits}}
}

func TestVerdictAtItsEdge(t *testing.T) {
	for _, c := range []struct {
		found, bound float64
		want         Judgment
	}{
		{0.85 - 1, -0.15, Kept}, // in binary a little above
		{-0.1499, -0.15, Broken},
		{-0.2, -0.15, Kept},
		{1.1, 1.1, Kept},
		{1.1001, 1.1, Broken},
		{math.NaN(), 1, Unknown},
		{1, math.NaN(), Unknown},
		{math.Inf(1), 1, Broken},
	} {
		if got := atMost(c.found, c.bound); got != c.want {
			t.Errorf("atMost(%v, %v) = %v, want %v", c.found, c.bound, got, c.want)
		}
		if got := atLeast(-c.found, -c.bound); got != c.want {
			t.Errorf("atLeast(%v, %v) = %v, want %v", -c.found, -c.bound, got, c.want)
		}
	}
}

func TestJudgmentsTogether(t *testing.T) {
	for _, c := range []struct{ a, b, both, either Judgment }{
		{Kept, Kept, Kept, Kept},
		{Kept, Broken, Broken, Kept},
		{Kept, Unknown, Unknown, Kept},
		{Broken, Unknown, Broken, Unknown},
		{Broken, Broken, Broken, Broken},
		{Unknown, Unknown, Unknown, Unknown},
	} {
		for _, swapped := range []bool{false, true} {
			a, b := c.a, c.b
			if swapped {
				a, b = b, a
			}
			if both(a, b) != c.both || either(a, b) != c.either {
				t.Errorf("%v and %v: both %v, either %v; want %v, %v", a, b, both(a, b), either(a, b), c.both, c.either)
			}
		}
	}
	if all() != Unknown || all(Kept, Kept) != Kept || all(Kept, Broken, Unknown) != Broken {
		t.Error("all judgments together")
	}
}

func TestCoVIsEvenEnoughByEitherBound(t *testing.T) {
	for _, c := range []struct {
		cov, alone float64
		want       Judgment
	}{
		{0.115, 0.1, Kept},
		{0.12, 0.1, Kept},
		{0.1201, 0.1, Broken}, // 0.02 is more than 15 %
		{0.46, 0.4, Kept},
		{0.4601, 0.4, Broken}, // 15 % is more than 0.02
		{0, 0.1, Kept},
		{math.NaN(), 0.1, Unknown},
	} {
		if got := evenEnough(c.cov, c.alone); got != c.want {
			t.Errorf("CoV %v beside %v: %v, want %v", c.cov, c.alone, got, c.want)
		}
	}
}

func TestPublishedOrderLetsNearFiguresSwap(t *testing.T) {
	ladder := climb{stages: make([]trace.Stage, 2), published: []published{
		{policy: "a", p90: []float64{1}}, {policy: "b", p90: []float64{10}}, {policy: "c", p90: []float64{19}},
	}}
	for _, c := range []struct {
		a, b, c float64
		want    Judgment
	}{
		{1, 2, 3, Kept}, {1, 3, 2, Kept}, {2, 1, 3, Broken}, {1, 1, 1, Broken}, {math.NaN(), 1, 2, Unknown},
	} {
		found := map[string]float64{"a": c.a, "b": c.b, "c": c.c}
		pairs := ladder.ordered(0, func(p string) Sample {
			return Sample{{Result: sim.Result{Stages: []sim.Stage{{}, {TTFT: sim.Distribution{P90: found[p]}}}}}}
		})
		if got := judgePairs(pairs); got != c.want || len(pairs) != 2 {
			t.Errorf("%v: %v of %d pairs, want %v of 2", found, got, len(pairs), c.want)
		}
	}
}

func TestEveryRateHasItsPublishedFigures(t *testing.T) {
	for _, c := range climbs {
		for _, p := range c.published {
			if len(p.p90) != len(c.rates()) || len(p.tokensPer) != len(c.rates()) {
				t.Errorf("%s, %s: %d and %d figures of %d rates", c.workload, p.policy, len(p.p90), len(p.tokensPer), len(c.rates()))
			}
		}
	}
}

func TestSampleSpread(t *testing.T) {
	s := Sample{outcome(1, 0.5), outcome(3, 0.5), outcome(2, 0.5)}
	if got := s.Cell(ttftMean) + "; " + s.Cell(hitRate) + "; " + (Sample{}).Cell(ttftMean); got != "2.00 (1.00 to 3.00); 0.500; -" {
		t.Errorf("cells %q", got)
	}
	base := Sample{outcome(2, 0), outcome(2, 0)} // the first seed's is missing
	for i, o := range s {
		o.Result.Seed = uint64(i) + 1
	}
	base[0].Result.Seed, base[1].Result.Seed = 2, 3
	mean, low, high := s.change(base, ttftMean)
	if mean != 0 || low != 0 || high != 0.5 {
		t.Errorf("change %v, %v to %v", mean, low, high)
	}
}

func TestFiguresInCells(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0123456: "0.0123", 1.234: "1.23", 12.34: "12.3", 1234: "1234", math.NaN(): "-", math.Inf(1): "-"} {
		if got := digits3(v); got != want {
			t.Errorf("digits3(%v) = %q, want %q", v, got, want)
		}
	}
	if got := percent(-0.1234) + percent(-0.0001) + percent(math.NaN()); got != "-12.3 %+0.0 %-" {
		t.Errorf("percents %q", got)
	}
	if got := geometricMean([]float64{1, 4, math.NaN()}); math.Abs(got-2) > 1e-12 {
		t.Errorf("geometric mean %v", got)
	}
}

func TestFingerprintOfDefaultsIsThatOfNothing(t *testing.T) {
	p := place{"conversation", "70b"}
	plain := job{p.under("cost", 1), 1}
	named := plain
	named.Config.Router = router.DefaultConfig() // its functions are new ones each time
	named.Config.Nodes, named.Config.TTL, named.Config.News = 1, 10*time.Minute, 5*time.Millisecond
	if plain.fingerprint(nil) != named.fingerprint(nil) {
		t.Error("defaults that are named make another run")
	}
	if plain.fingerprint(nil) != (job{p.under("cost", 1), 1}).fingerprint(nil) {
		t.Error("the same run has two fingerprints")
	}
}

func TestFingerprintDiffersWithWhatDecides(t *testing.T) {
	p := place{"conversation", "70b"}
	seen := map[string]int{}
	files := Files{"conversation": file{digest: "1"}}
	change := func(do func(*job)) job {
		j := job{p.under("cost", 1), 1}
		do(&j)
		return j
	}
	list := []job{
		change(func(*job) {}),
		change(func(j *job) { j.seed = 2 }),
		change(func(j *job) { j.Source.Rate *= 2 }),
		change(func(j *job) { j.Source.Limit = 10 }),
		change(func(j *job) { j.Config.Policy = "smg" }),
		change(func(j *job) { j.Config.Nodes = 8 }),
		change(func(j *job) { j.Config.Router = router.DefaultConfig(); j.Config.Router.Cost.NovelFactor = 3 }),
		change(func(j *job) { j.Config.Disturb = []sim.Disturbance{{Kind: sim.KillNode}} }),
		change(func(j *job) { j.Config.Profile.KVTokens++ }),
	}
	for i, j := range list {
		print := j.fingerprint(files)
		if other, ok := seen[print]; ok {
			t.Errorf("jobs %d and %d have one fingerprint", i, other)
		}
		seen[print] = i
	}
	if list[0].fingerprint(files) == list[0].fingerprint(Files{"conversation": file{digest: "2"}}) {
		t.Error("another file makes no other run")
	}
}

func TestEachKnobHasOneDefault(t *testing.T) {
	for _, k := range knobs() {
		n := 0
		for _, s := range k.values {
			if s.isDefault() {
				n++
			}
		}
		if n > 1 {
			t.Errorf("%s: %d values are the default", k.name, n)
		}
	}
}

func TestSentenceOfAKnob(t *testing.T) {
	k := knob{"k", []setting{{label: "1"}, {label: "2"}}}
	for _, c := range []struct {
		best, own int
		want      string
	}{
		{0, 0, "No other value of k is better on the whole than the default, 1."},
		{0, 1, "On the whole k at 1 changes mean TTFT by -50.0 % against the default, 2."},
		{1, 0, "On the whole k at 2 changes mean TTFT by +100.0 % against the default, 1. No larger value was tried."},
	} {
		if got := knobSentence(k, c.best, c.own, []float64{1, 2}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestRunnerDoesEachOnceAndKeepsOrder(t *testing.T) {
	var mu sync.Mutex
	var kept int
	runs := map[string]int{}
	r := runner{
		workers: 4, progress: io.Discard, now: time.Now,
		keep: func(*Outcome) error { kept++; return nil },
		simulate: func(_ context.Context, j job) (*Outcome, error) {
			mu.Lock()
			defer mu.Unlock()
			runs[j.String()]++
			return &Outcome{Case: j.String()}, nil
		},
	}
	var jobs []job
	for seed := range uint64(50) {
		jobs = append(jobs, job{place{"conversation", "70b"}.under("cost", 1).on(int(seed%8) + 1), seed})
	}
	outcomes, err := r.run(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range jobs {
		if outcomes[i].Case != j.String() || runs[j.String()] != 1 {
			t.Errorf("place %d has %q, run %d times", i, outcomes[i].Case, runs[j.String()])
		}
	}
	if kept != len(jobs) {
		t.Errorf("%d of %d were kept", kept, len(jobs))
	}
}

func TestRunnerBeginsWithTheLongest(t *testing.T) {
	var order []int
	r := runner{
		workers: 1, progress: io.Discard, now: time.Now, keep: func(*Outcome) error { return nil },
		simulate: func(_ context.Context, j job) (*Outcome, error) {
			order = append(order, j.Config.Nodes)
			return &Outcome{}, nil
		},
	}
	var jobs []job
	for _, n := range []int{2, 8, 1, 4} {
		jobs = append(jobs, job{place{"conversation", "70b"}.under("cost", 1).on(n), 1})
	}
	if _, err := r.run(t.Context(), jobs); err != nil || !slices.Equal(order, []int{8, 4, 2, 1}) {
		t.Errorf("order %v, %v", order, err)
	}
}

func TestRunnerGoesOnAfterAFailure(t *testing.T) {
	broken := errors.New("broken")
	r := runner{
		workers: 2, progress: io.Discard, now: time.Now, keep: func(*Outcome) error { return nil },
		simulate: func(_ context.Context, j job) (*Outcome, error) {
			if j.seed == 2 {
				return nil, broken
			}
			return &Outcome{}, nil
		},
	}
	outcomes, err := r.run(t.Context(), []job{{seed: 1}, {seed: 2}, {seed: 3}})
	if !errors.Is(err, broken) || outcomes[0] == nil || outcomes[1] != nil || outcomes[2] == nil {
		t.Errorf("outcomes %v, %v", outcomes, err)
	}
}

func TestRunnerIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started := 0
	r := runner{
		workers: 1, progress: io.Discard, now: time.Now, keep: func(*Outcome) error { return nil },
		simulate: func(ctx context.Context, _ job) (*Outcome, error) {
			started++
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	_, err := r.run(ctx, make([]job, 100))
	if !errors.Is(err, context.Canceled) || started > 2 {
		t.Errorf("%d were started, %v", started, err)
	}
}

func TestStoreGivesBackWhatThisBuildPut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(path, []byte(`{"fingerprint":"cut","bui`), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, build := range []string{"old", "new"} {
		o := outcome(float64(i), 0)
		o.Fingerprint, o.Build = "a", build
		if err := s.put(o); err != nil {
			t.Fatal(err)
		}
	}
	if s, err = OpenStore(path); err != nil {
		t.Fatal(err)
	}
	if s.get("a", "old") != nil || s.get("b", "") != nil || s.get("cut", "") != nil {
		t.Error("another build's result is taken, or one that is not there")
	}
	if o := s.get("a", "new"); o == nil || o.Result.TTFT.Mean != 1 {
		t.Errorf("kept %+v", o)
	}
	if s.get("a", "") == nil {
		t.Error("of any build there is one")
	}
}

func TestRunsOfSeveralExperimentsAreOne(t *testing.T) {
	c := place{"conversation", "70b"}.under("cost", 1)
	list := []Experiment{{Cases: []Case{c, c}}, {Cases: []Case{c}, Seeds: 1}, {Lesser: []Case{c}}}
	r := &Results{seeds: seedsUpTo(3), found: map[string]*Outcome{}}
	if jobs := r.missing(list, &Store{}, "b", false); len(jobs) != 3 {
		t.Errorf("%d runs, want one a seed", len(jobs))
	}
}

func TestTraceIsBuiltOnceAndPaced(t *testing.T) {
	j := job{Case{Source: Source{Workload: "ladder-73", Rate: 4, Limit: 8}}, 1}
	shared := newTraces(nil, []job{j, j})
	a, err := shared.of(j)
	if err != nil {
		t.Fatal(err)
	}
	b, err := shared.of(j)
	if err != nil {
		t.Fatal(err)
	}
	if a.Requests() != 8 || &a.Sessions[0].Requests[0] != &b.Sessions[0].Requests[0] {
		t.Errorf("%d requests, or two traces", a.Requests())
	}
	slow := paced(a, 0.5)
	if slow.Sessions[7].Start != 2*a.Sessions[7].Start || a.Sessions[7].Start == 0 {
		t.Errorf("start %v at half the rate of %v", slow.Sessions[7].Start, a.Sessions[7].Start)
	}
	shared.done(j)
	shared.done(j)
	if len(shared.built) != 0 {
		t.Error("a trace that nobody needs is still held")
	}
	lanes := paced(&trace.Trace{Lanes: 64, Sessions: a.Sessions}, 9.6)
	if lanes.Lanes != 10 || lanes.Sessions[7].Start != a.Sessions[7].Start {
		t.Errorf("closed loop of %d lanes", lanes.Lanes)
	}
}

func TestCrossing(t *testing.T) {
	if got := crossing([]float64{1, 2, 4}, []float64{1, 1, 100}, 10); math.Abs(got-2*math.Sqrt2) > 1e-9 {
		t.Errorf("crossing at %v", got)
	}
	if got := crossing([]float64{1, 2}, []float64{1, 2}, 10); !math.IsNaN(got) {
		t.Errorf("crossing at %v where there is none", got)
	}
}

func TestDipAndReturn(t *testing.T) {
	before := []float64{1, 1, 1, 1, 1, 1, 1, 1}
	bound := func(float64) float64 { return 0.1 }
	for _, c := range []struct {
		name  string
		after []float64
		want  dip
	}{
		{"back after a second look", []float64{0, 1, 0.5, 1, 0.8, 1, 1, 1}, dip{0.5, 15, false}}, // what was before does not count
		{"not back", []float64{1, 1, 1, 1, 1, 1, 1, 0}, dip{1, 30, true}},
		{"never away", before, dip{0, math.NaN(), false}},
		{"better", []float64{1, 1, 2, 2, 2, 2, 2, 2}, dip{0, math.NaN(), false}},
	} {
		d := dipOf(before, c.after, 2*shakenWindow, -1, bound)
		if d.depth != c.want.depth || d.ever != c.want.ever || d.last != c.want.last && !math.IsNaN(c.want.last) {
			t.Errorf("%s: %+v, want %+v", c.name, d, c.want)
		}
	}
}

func TestWindowsEndWhereRequestsDo(t *testing.T) {
	o := outcome(1, 0)
	for _, n := range []int{1, 100, enoughOf, enoughOf - 1, 100} {
		o.Result.Windows = append(o.Result.Windows, sim.Window{Requests: n, HitRate: 0.5})
	}
	if got := meanWindows(Sample{o}, windowHits); !slices.Equal(got, []float64{0.5, 0.5, 0.5}) {
		t.Errorf("windows %v", got)
	}
	if got := meanWindows(nil, windowHits); got != nil {
		t.Errorf("windows of nothing: %v", got)
	}
}

func TestPanelsOfEveryKindAreDrawn(t *testing.T) {
	f := Figure{Title: "t", Columns: 2, Panels: []Panel{
		{Title: "<&>", LogX: true, LogY: true, Lines: []Line{{Name: "cost", Points: []Point{{0, 1, 1, 1}, {1, 0, 0, 0}, {2, 3, 2, 4}, {3, math.NaN(), 0, 0}}}}},
		{FromZero: true, Ticks: []float64{1, 2}, Lines: []Line{{Name: "other", Bare: true, Points: []Point{{1, 1, 1, 1}, {2, 2, 2, 2}}}}},
		{LogX: true, LogY: true}, // nothing in it
	}}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sans-serif", ">cost<", ">other<", "&lt;&amp;&gt;", "</svg>"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in the figure", want)
		}
	}
	if strings.Contains(string(svg), "NaN") {
		t.Error("NaN is drawn")
	}
}

// Every experiment shows itself without results, and judges nothing then.
func TestWithoutResultsNothingIsJudged(t *testing.T) {
	list := Experiments()
	r := &Results{seeds: []uint64{1}, found: map[string]*Outcome{}}
	for i := range list {
		var page Page
		list[i].Show(&page, r)
		for _, v := range page.verdicts {
			if v.Judgment != Unknown {
				t.Errorf("%s: %s without results: %s", list[i].Name, v.Judgment, v.Promise)
			}
		}
		for _, f := range page.figures {
			if _, err := f.figure.SVG(); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
	}
}

func TestReportOfFixedResults(t *testing.T) {
	r := &Results{seeds: []uint64{1, 2}, found: map[string]*Outcome{}}
	put := func(policy string, ttft, hits float64) Case {
		c := place{"conversation", "70b"}.under(policy, 1)
		for _, seed := range r.seeds {
			o := outcome(ttft*float64(seed), hits)
			o.Fingerprint = job{c, seed}.fingerprint(nil)
			r.found[o.Fingerprint] = o
		}
		return c
	}
	ours, theirs := put("cost", 1, 0.5), put("smg", 2, 0.4)
	e := Experiment{Name: "small", Question: "Which is better?", Cases: []Case{ours, theirs}}
	e.Show = func(page *Page, r *Results) {
		table := &report.Table{Header: []string{"policy", ttftMean.Name, hitRate.Name}}
		for _, c := range e.Cases {
			table.Add(c.Config.Policy, r.Of(c).Cell(ttftMean), r.Of(c).Cell(hitRate))
		}
		page.Table(table)
		page.Show("small-ttft", Figure{Title: "a figure", Panels: []Panel{{}}})
		change, _, _ := r.Of(ours).change(r.Of(theirs), ttftMean)
		page.Judge(verdict(atMost(change, -0.15), "15 % less", "%s", percent(change)), verdict(Broken, "more", "less"))
	}
	pages := make([]Page, 1)
	e.Show(&pages[0], r)
	o := Options{Render: true, Sliced: true}
	got := render([]Experiment{e}, pages, r, notes(o, r, time.Second, fmt.Errorf("one failed")))
	golden := filepath.Join("testdata", "report.md")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("report is\n%s\nwant\n%s", got, want)
	}
}
