package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxMarks is up to how many combining marks in a row the library takes as they are:
// behind 30, counted after decomposition, it puts in joiners of its own. No character
// decomposes into more than four.
const maxMarks = 30 / 4

// normalForm is the normal form of a text of any kind.
func normalForm(form norm.Form, s string) string {
	if form.IsNormalString(s) {
		return s
	}
	if marksInARow(s) <= maxMarks {
		return form.String(s)
	}
	decompose := norm.NFD
	if form == norm.NFKC || form == norm.NFKD {
		decompose = norm.NFKD
	}
	runes := decomposed(decompose, s)
	if form == norm.NFC || form == norm.NFKC {
		runes = composed(runes)
	}
	return string(runes)
}

// marksInARow is the longest run of characters that aren't starters.
func marksInARow(s string) (most int) {
	run := 0
	for i := 0; i < len(s); {
		p := norm.NFD.PropertiesString(s[i:])
		if run++; p.CCC() == 0 && p.LeadCCC() == 0 {
			run = 0
		}
		most = max(most, run)
		i += max(p.Size(), 1)
	}
	return most
}

// decomposed takes each character apart, and puts each run of marks into the order
// of their classes.
func decomposed(form norm.Form, s string) []rune {
	runes := make([]rune, 0, len(s))
	for _, r := range s {
		runes = append(runes, []rune(form.String(string(r)))...)
	}
	for i := 0; i < len(runes); {
		end := i
		for end < len(runes) && markClass(runes[end]) != 0 {
			end++
		}
		slices.SortStableFunc(runes[i:end], func(a, b rune) int { return int(markClass(a)) - int(markClass(b)) })
		i = end + 1
	}
	return runes
}

// composed composes in place: each mark with the starter before it, unless a mark
// between them has the same or a higher class.
func composed(runes []rune) []rune {
	starter, last := -1, uint8(0) // index of the starter; class of the mark before
	n := 0
	for _, r := range runes {
		class := markClass(r)
		if starter >= 0 && (n-1 == starter || last < class && last != 0) {
			if whole, ok := compose(runes[starter], r); ok {
				runes[starter] = whole
				continue
			}
		}
		if last = class; class == 0 {
			starter = n
		}
		runes[n] = r
		n++
	}
	return runes[:n]
}

// compose is the one character that two compose to.
func compose(a, b rune) (rune, bool) {
	var pair strings.Builder
	pair.WriteRune(a)
	pair.WriteRune(b)
	whole := norm.NFC.String(pair.String())
	r, size := utf8.DecodeRuneInString(whole)
	return r, size == len(whole)
}

func markClass(r rune) uint8 { return norm.NFD.PropertiesString(string(r)).CCC() }
