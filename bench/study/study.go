package study

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"kvca/bench/report"
	"kvca/bench/sim"
)

// Options are what a study is asked to do.
type Options struct {
	// Only names experiments; empty for all that are no extras.
	Only []string
	// Seeds is how many runs differ in nothing else.
	Seeds int
	// Full plays whole traces where experiments take the first part, for which the
	// time is there only once in a while.
	Full bool
	// Files are the recorded traces; Sliced says that they are parts only.
	Files  Files
	Sliced bool
	// Store keeps results; Stale takes those of other builds too, and Render
	// simulates nothing.
	Store         *Store
	Stale, Render bool
	// Out is the folder of the report, Command what it is the report of.
	Out, Command string
	// Progress takes lines while runs go on, Summary the verdicts.
	Progress, Summary io.Writer
}

// Run does what is asked, and writes the report also where some runs failed.
// It tells whether a promise is broken.
func Run(ctx context.Context, o Options) (broken bool, err error) {
	list, err := chosen(o.Only)
	if err != nil {
		return false, err
	}
	build, err := buildID()
	if err != nil {
		return false, err
	}
	seeds := seedsUpTo(o.Seeds)
	results := &Results{files: o.Files, seeds: seeds, full: o.Full, found: map[string]*Outcome{}}
	began := time.Now()
	jobs := results.missing(list, o.Store, build, o.Stale || o.Render)
	if o.Render {
		jobs = nil
	}
	runErr := simulateAll(ctx, o, results, jobs, build)
	if ctx.Err() != nil {
		return false, runErr
	}
	broken, err = write(o, list, results, time.Since(began), runErr)
	return broken, errors.Join(runErr, err)
}

func seedsUpTo(n int) []uint64 {
	var seeds []uint64
	for seed := range uint64(max(n, 1)) {
		seeds = append(seeds, seed+1)
	}
	return seeds
}

// chosen are the experiments of these names.
func chosen(only []string) ([]Experiment, error) {
	all := Experiments()
	if len(only) == 0 {
		return slices.DeleteFunc(all, func(e Experiment) bool { return e.Extra }), nil
	}
	var list []Experiment
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
		if slices.Contains(only, e.Name) {
			list = append(list, e)
		}
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("experiment %q: want some of %s", name, strings.Join(names, ", "))
		}
	}
	return list, nil
}

// List says what experiments there are, and how many runs each is.
func List(w io.Writer, seeds int) {
	r := &Results{seeds: seedsUpTo(seeds)}
	for _, e := range Experiments() {
		_, runs, _ := r.of(&e)
		extra := ""
		if e.Extra {
			extra = " Only where it is named."
		}
		fmt.Fprintf(w, "%-13s %4d runs  %s%s\n", e.Name, runs, e.Question, extra)
	}
}

// jobs are an experiment's runs.
func (e *Experiment) jobs(seeds []uint64) []job {
	if e.Seeds > 0 {
		seeds = seeds[:min(e.Seeds, len(seeds))]
	}
	var list []job
	for _, c := range e.Cases {
		for _, seed := range seeds {
			list = append(list, job{c, seed})
		}
	}
	for _, c := range e.Lesser {
		list = append(list, job{c, seeds[0]})
	}
	return list
}

// missing are the runs whose results the store does not have, each once.
func (r *Results) missing(list []Experiment, s *Store, build string, stale bool) []job {
	if stale {
		build = ""
	}
	var jobs []job
	seen := map[string]bool{}
	for i := range list {
		for _, j := range list[i].jobs(r.seeds) {
			j = r.sized(j)
			print := j.fingerprint(r.files)
			if seen[print] {
				continue
			}
			seen[print] = true
			if o := s.get(print, build); o != nil {
				r.found[print] = o
				continue
			}
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// simulateAll runs the jobs and adds to results.
func simulateAll(ctx context.Context, o Options, results *Results, jobs []job, build string) error {
	if len(jobs) == 0 {
		return nil
	}
	shared := newTraces(o.Files, jobs)
	r := runner{
		workers: runtime.GOMAXPROCS(0), keep: o.Store.put, progress: o.Progress, now: time.Now,
		simulate: func(ctx context.Context, j job) (*Outcome, error) {
			defer shared.done(j)
			t, err := shared.of(j)
			if err != nil {
				return nil, err
			}
			cfg := j.Config
			cfg.Seed = j.seed
			result, err := sim.Run(ctx, cfg, t)
			if err != nil {
				return nil, err
			}
			return &Outcome{Fingerprint: j.fingerprint(o.Files), Build: build, Case: j.String(), Result: *result, Quantiles: quantiles(result.TTFTs)}, nil
		},
	}
	outcomes, err := r.run(ctx, jobs)
	for _, outcome := range outcomes {
		if outcome != nil {
			outcome.Result.TTFTs = nil
			results.found[outcome.Fingerprint] = outcome
		}
	}
	return err
}

// buildID is a digest of the program: where it is another, results may be others.
func buildID() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the program: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read the program: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// write writes the report and its figures.
func write(o Options, list []Experiment, results *Results, took time.Duration, failed error) (broken bool, err error) {
	w, err := report.New(io.Discard, o.Out, "report.md", o.Command)
	if err != nil {
		return false, err
	}
	pages := make([]Page, len(list))
	for i := range list {
		list[i].Show(&pages[i], results)
	}
	text := render(list, pages, results, notes(o, results, took, failed))
	w.Printf("%s", text)
	if err := w.Close(); err != nil {
		return false, err
	}
	for i := range pages {
		for _, v := range pages[i].verdicts {
			broken = broken || v.Judgment == Broken
		}
		if err := writeFigures(o.Out, pages[i].figures); err != nil {
			return false, err
		}
	}
	fmt.Fprintf(o.Summary, "%s\nreport: %s\n", summary(list, pages), filepath.Join(o.Out, "report.md"))
	return broken, nil
}

func writeFigures(dir string, figures []namedFigure) error {
	for _, f := range figures {
		svg, err := f.figure.SVG()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.name+".svg"), svg, 0o644); err != nil {
			return fmt.Errorf("write figure: %w", err)
		}
	}
	return nil
}
