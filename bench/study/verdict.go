package study

import (
	"fmt"
	"math"
)

// Verdict is what came of a promise.
type Verdict struct {
	Promise  string
	Judgment Judgment
	// Found is the figure, in words.
	Found string
}

// Judgment of a promise.
type Judgment string

// A promise is kept or broken by figures, and unknown without them.
const (
	Kept    Judgment = "kept"
	Broken  Judgment = "BROKEN"
	Unknown Judgment = "not measured"
)

// rounding forgives what binary fractions do to a figure that is exactly at its
// bound.
const rounding = 1e-9

// atMost judges a figure by the bound that it may reach.
func atMost(found, bound float64) Judgment {
	switch {
	case math.IsNaN(found) || math.IsNaN(bound):
		return Unknown
	case found <= bound+rounding:
		return Kept
	}
	return Broken
}

// atLeast judges a figure by the bound that it must reach.
func atLeast(found, bound float64) Judgment { return atMost(-found, -bound) }

// both is kept where both are, broken where either is.
func both(a, b Judgment) Judgment {
	switch {
	case a == Broken || b == Broken:
		return Broken
	case a == Unknown || b == Unknown:
		return Unknown
	}
	return Kept
}

// either is kept where either is.
func either(a, b Judgment) Judgment {
	switch {
	case a == Kept || b == Kept:
		return Kept
	case a == Unknown || b == Unknown:
		return Unknown
	}
	return Broken
}

// all is kept where all are.
func all(list ...Judgment) Judgment {
	sum := Kept
	for _, j := range list {
		sum = both(sum, j)
	}
	if len(list) == 0 {
		return Unknown
	}
	return sum
}

func verdict(j Judgment, promise, found string, args ...any) Verdict {
	return Verdict{Promise: promise, Judgment: j, Found: fmt.Sprintf(found, args...)}
}
