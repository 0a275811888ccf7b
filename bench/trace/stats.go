package trace

import (
	"slices"
	"time"
)

// Summary is what a trace asks for, all in all.
type Summary struct {
	Sessions, Requests, FollowUps int

	Span           time.Duration // until the last session's Start
	Prompt, Output Sizes
	// Reuse is the share of prompt tokens in units that have come before: the hit rate of one cache without end, if all requests came
	// one after the other. Answers count from when a prompt repeats them.
	Reuse float64
	// Units is the number of different units.
	Units int
}

// Sizes are in tokens.
type Sizes struct {
	Mean          float64
	P50, P90, Max int
}

// Stats goes through a whole trace. It holds every name in memory once.
func Stats(t *Trace) Summary {
	s := Summary{Sessions: len(t.Sessions)}
	var prompts, outputs []int
	repeated, seen := 0, map[uint64]struct{}{}
	for i := range t.Sessions {
		s.Span = max(s.Span, t.Sessions[i].Start)
		for _, r := range t.Sessions[i].Requests {
			prompts, outputs = append(prompts, r.PromptTokens), append(outputs, r.OutputTokens)
			repeated += UnitTokens * note(seen, r.Names)
			if r.FollowUp {
				s.FollowUps++
			}
		}
	}
	s.Requests, s.Units = len(prompts), len(seen)
	s.Prompt, s.Output = sizesOf(prompts), sizesOf(outputs)
	if s.Requests > 0 {
		s.Reuse = float64(repeated) / (s.Prompt.Mean * float64(s.Requests))
	}
	return s
}

// note adds names to those seen and returns how many of them, from the first on, had been.
func note(seen map[uint64]struct{}, names []uint64) int {
	n := slices.IndexFunc(names, func(name uint64) bool { _, ok := seen[name]; return !ok })
	if n < 0 {
		return len(names)
	}
	for _, name := range names[n:] {
		seen[name] = struct{}{}
	}
	return n
}

// sizesOf sorts the sizes.
func sizesOf(sizes []int) Sizes {
	if len(sizes) == 0 {
		return Sizes{}
	}
	slices.Sort(sizes)
	sum := 0
	for _, n := range sizes {
		sum += n
	}
	last := len(sizes) - 1
	return Sizes{
		Mean: float64(sum) / float64(len(sizes)),
		P50:  sizes[last/2], P90: sizes[last*9/10], Max: sizes[last],
	}
}
