package study

// Results are what came of all cases.
type Results struct {
	files Files
	seeds []uint64
	full  bool
	found map[string]*Outcome
}

// Of is what came of a case, seed by seed; empty where it was not run.
func (r *Results) Of(c Case) Sample {
	var s Sample
	for _, seed := range r.seeds {
		if o := r.found[r.sized(job{c, seed}).fingerprint(r.files)]; o != nil {
			s = append(s, o)
		}
	}
	return s
}

// sized is the job as it is run: with the whole trace where that is wanted.
func (r *Results) sized(j job) job {
	if r.full {
		j.Source.Limit = 0
	}
	return j
}

// of is how many of an experiment's runs there are, of how many, and how long they
// took; runs that others ask for too are among them.
func (r *Results) of(e *Experiment) (runs, wanted int, seconds float64) {
	seen := map[string]bool{}
	for _, j := range e.jobs(r.seeds) {
		print := r.sized(j).fingerprint(r.files)
		if seen[print] {
			continue
		}
		seen[print] = true
		if o := r.found[print]; o != nil {
			runs++
			seconds += o.Result.WallS
		}
	}
	return runs, len(seen), seconds
}
