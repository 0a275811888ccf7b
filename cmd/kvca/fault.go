package main

import (
	"fmt"
	"strings"
)

// origin is where a value came from.
type origin struct {
	// place is the flag with its dashes, the variable's name, or the file's.
	place string
	// line is the line in a file, 0 elsewhere.
	line int
}

// byDefault is the origin of what nobody has set.
var byDefault = origin{place: "default"}

func (o origin) String() string {
	if o.line > 0 {
		return fmt.Sprintf("%s:%d", o.place, o.line)
	}
	return o.place
}

// names is whether the place is called like the key, as a flag and a variable are.
func (o origin) names(key string) bool {
	name, flag := strings.CutPrefix(o.place, "--")
	if !flag {
		name, _ = strings.CutPrefix(o.place, "KVCA_")
	}
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }
	return o.line == 0 && plain(name) == plain(key)
}

// fault is one thing wrong with a configuration. Its text says where it stands,
// which key it is, what the value is and what would be right.
type fault struct {
	origin
	key  string // as in a file; empty where the fault is about no key
	text string
}

func (f fault) String() string {
	if f.key == "" || f.names(f.key) {
		return fmt.Sprintf("%v: %s", f.origin, f.text)
	}
	return fmt.Sprintf("%v: %s: %s", f.origin, f.key, f.text)
}

// faults are all that is wrong, in the order of the file.
type faults []fault

func (fs faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// err is nil where there is no fault.
func (fs faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// leaves takes a joined error apart.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, e := range joined.Unwrap() {
		list = append(list, leaves(e)...)
	}
	return list
}

// leadingWord is the name that an error begins with, as component's faults do:
// "body_budget: 12 is less than ..." and "path "x": must begin with /".
func leadingWord(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	if end < 0 {
		return text
	}
	return text[:end]
}
