package tokenizer

import (
	"fmt"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// matchTimeout bounds one match of a pattern that is not known: the engine
// backtracks, and a pattern may be such that it takes exponential time.
const matchTimeout = 250 * time.Millisecond

// patternStep splits by a regular expression. What is between matches is dropped
// where the file says so.
func patternStep(source string, dropGaps bool) (step, error) {
	if match, ok := rules[source]; ok && !dropGaps {
		return match.step, nil
	}
	re, err := regexp2.Compile(source, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("split pattern %q: %w", source, err)
	}
	re.MatchTimeout = matchTimeout
	return func(piece string, part func(string)) error {
		return eachMatch(re, piece, dropGaps, part)
	}, nil
}

// eachMatch works on runes, since that is what the engine's offsets count.
func eachMatch(re *regexp2.Regexp, piece string, dropGaps bool, part func(string)) error {
	runes := []rune(piece)
	gap, at := 0, 0 // rune and byte where the text not given out begins
	give := func(end int, drop bool) {
		n := 0
		for _, r := range runes[gap:end] {
			n += len(string(r))
		}
		if n > 0 && !drop {
			part(piece[at : at+n])
		}
		gap, at = end, at+n
	}
	m, err := re.FindRunesMatch(runes)
	for m != nil && err == nil {
		if m.Length > 0 {
			give(m.Index, dropGaps)
			give(m.Index+m.Length, false)
		}
		m, err = re.FindNextMatch(m)
	}
	if err != nil {
		return fmt.Errorf("split pattern took more than %v at character %d of %d", matchTimeout, gap, len(runes))
	}
	give(len(runes), dropGaps)
	return nil
}

// literalStep splits by a string.
func literalStep(sep string, dropGaps bool) step {
	return func(piece string, part func(string)) error {
		for {
			before, after, found := strings.Cut(piece, sep)
			if before != "" && !dropGaps {
				part(before)
			}
			if !found {
				return nil
			}
			part(sep)
			piece = after
		}
	}
}

// digitsStep isolates digits, each on its own or in runs.
func digitsStep(individual bool) step {
	most := int(^uint(0) >> 1)
	if individual {
		most = 1
	}
	return rule(func(r *reader, i int) int { return r.digits(i, most) }).step
}
