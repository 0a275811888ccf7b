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
