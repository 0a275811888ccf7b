package steer

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// saltField is the member that keeps the caches of tenants apart.
const saltField = "cache_salt"

// Rules are what is done with the members of a body. They must not change while
// they are in use. The zero value, and nil, leave everything as it is.
type Rules struct {
	// Strip are names of members to take away, Refuse those for which a request
	// is refused, which comes first. A trailing * stands for any ending. Too long
	// a list takes from clients what they may need, too short a one lets them
	// choose caches, ranks and templates.
	Strip, Refuse []string
	// Salt is set as cache_salt, in place of the client's; "" leaves that alone.
	Salt string
}

// idle is whether there is nothing to do.
func (r *Rules) idle() bool {
	return r == nil || len(r.Strip) == 0 && len(r.Refuse) == 0 && r.Salt == ""
}

// verdict is what becomes of one member.
type verdict struct {
	refused string // the rule that refuses it
	drop    bool
}

// judge decides on the member whose key is quoted, with its quotes.
func (r *Rules) judge(quoted []byte) (verdict, bool) {
	key := quoted[1 : len(quoted)-1]
	for _, c := range key {
		if c == '\\' || c >= utf8.RuneSelf {
			var name string
			if json.Unmarshal(quoted, &name) != nil {
				return verdict{}, false
			}
			return r.decide(func(rule string) bool { return matchesText(rule, name) }), true
		}
	}
	return r.decide(func(rule string) bool { return matchesPlain(rule, key) }), true
}

func (r *Rules) decide(matches func(rule string) bool) verdict {
	for _, rule := range r.Refuse {
		if matches(rule) {
			return verdict{refused: rule}
		}
	}
	if r.Salt != "" && matches(saltField) {
		return verdict{drop: true}
	}
	for _, rule := range r.Strip {
		if matches(rule) {
			return verdict{drop: true}
		}
	}
	return verdict{}
}

// matchesPlain compares a rule with a key of plain ASCII: nearly all keys are.
func matchesPlain(rule string, key []byte) bool {
	if n := len(rule) - 1; n >= 0 && rule[n] == '*' {
		return len(key) >= n && equalFold(rule[:n], key[:n])
	}
	return len(key) == len(rule) && equalFold(rule, key)
}

// equalFold compares two texts of the same length.
func equalFold(a string, b []byte) bool {
	for i := range b {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c-'A' < 26 {
		c += 'a' - 'A'
	}
	return c
}

// matchesText compares a rule with any name, by the letters that Unicode takes
// for the same: a parser that has no regard to case has none to those either.
func matchesText(rule, name string) bool {
	stem, prefix := strings.CutSuffix(rule, "*")
	if !prefix {
		return strings.EqualFold(rule, name)
	}
	at := 0
	for range utf8.RuneCountInString(stem) {
		_, size := utf8.DecodeRuneInString(name[at:])
		at += size
	}
	return strings.EqualFold(stem, name[:at])
}
