package study

import "time"

// Experiment is a question, and the runs that answer it.
type Experiment struct {
	// Name is what -only takes, and how its figures' files begin.
	Name string
	// Question is one sentence.
	Question string
	// Seeds is how many it takes at most; 0: as many as are asked for.
	Seeds int
	// Extra is only run where it is named: it is a tool, not evidence.
	Extra bool
	Cases []Case
	// Lesser are cases that one seed is enough for.
	Lesser []Case
	// Show writes what was found. Cases that were not run have empty samples.
	Show func(*Page, *Results)
}

// networkDelay is between two nodes where an experiment has no other.
const networkDelay = time.Millisecond

// Experiments are all there are, in the report's order.
func Experiments() []Experiment {
	return []Experiment{
		opponents(), precise(), load(), distribution(), nodes(), delay(), fleet(), disturb(), unevenFleets(), ladders(), defaults(), saturation(),
	}
}
