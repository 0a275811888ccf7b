package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxFileBytes bounds a configuration file.
const maxFileBytes = 1 << 20

// sources are the places that settings come from.
type sources struct {
	// flag gives the values of a flag, and whether it was given at all; nil for
	// no flags.
	flag func(o *option) (values []string, given bool)
	// env looks a variable up; nil for none. An empty variable counts as unset.
	env func(name string) (string, bool)
	// file is the name of the configuration file, empty for none.
	file string
}

// given is what one source says of one option.
type given struct {
	origin
	items []item
}

// fromFlag is what the command line says of o.
func (src *sources) fromFlag(o *option) (given, bool) {
	if src.flag == nil {
		return given{}, false
	}
	values, ok := src.flag(o)
	return given{origin{place: "--" + o.name}, scalars(values)}, ok
}

// fromEnv is what the environment says of o. Elements of a list are separated
// by commas; what holds a comma itself has to go into a file or a flag.
func (src *sources) fromEnv(o *option) (given, bool) {
	if src.env == nil {
		return given{}, false
	}
	text, ok := src.env(o.variable())
	if !ok || text == "" {
		return given{}, false
	}
	values := []string{text}
	if o.repeats {
		values = strings.Split(text, ",")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
	}
	return given{origin{place: o.variable()}, scalars(values)}, true
}

// byDef is the option's default.
func byDef(o *option) (given, bool) {
	return given{byDefault, scalars([]string{o.def})}, o.def != ""
}

func scalars(values []string) []item {
	items := make([]item, len(values))
	for i, v := range values {
		items[i] = item{kind: scalar, text: v}
	}
	return items
}

// readFile reads the configuration file into what it says, by the option's key.
func (src *sources) readFile(table []*option) (map[string]given, faults) {
	if src.file == "" {
		return nil, nil
	}
	text, err := readBounded(src.file, maxFileBytes)
	if err != nil {
		return nil, faults{{origin{place: src.file}, "", err.Error()}}
	}
	fields, wrong := document(src.file, text)
	byKey := make(map[string]given, len(fields))
	for _, f := range fields {
		at := origin{src.file, f.line}
		o := optionOf(table, f.key)
		if o == nil {
			wrong = append(wrong, fault{at, f.key, unknownKey(table, f.key)})
			continue
		}
		items, text := itemsOf(o, f.value)
		if text != "" {
			wrong = append(wrong, fault{at, f.key, text})
		}
		byKey[f.key] = given{at, items}
	}
	return byKey, wrong
}

// itemsOf checks the shape of what a file has for o.
func itemsOf(o *option, v item) (items []item, wrong string) {
	switch {
	case v.kind == unreadable:
		return nil, ""
	case o.repeats && v.kind == nothing:
		return nil, "" // all elements are commented out
	case o.repeats && v.kind == sequence:
		return v.list, ""
	case o.repeats && v.kind == scalar:
		return nil, fmt.Sprintf("%q is a single value: want a list of %s", v.text, o.value)
	case o.repeats:
		return nil, fmt.Sprintf("is %v: want a list of %s", v.kind, o.value)
	case v.kind != scalar:
		return nil, fmt.Sprintf("is %v: want %s", v.kind, wanted(o))
	}
	return []item{v}, ""
}

func wanted(o *option) string {
	if o.isSwitch() {
		return "true or false"
	}
	return o.value
}

func optionOf(table []*option, key string) *option {
	for _, o := range table {
		if o.key() == key {
			return o
		}
	}
	return nil
}

// unknownKey says that there is no such key, and which one may be meant.
func unknownKey(table []*option, key string) string {
	names := make([]string, len(table))
	for i, o := range table {
		names[i] = o.key()
	}
	if near := nearest(strings.ReplaceAll(key, "-", "_"), names); near != "" {
		return "no such key: want " + near + "?"
	}
	return "no such key: want one of " + strings.Join(names, ", ")
}

// readBounded reads a file of at most limit bytes.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("can't be read (%w): want a readable file", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("can't be read (%w): want a readable file", err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("is longer than %s: want a smaller file", showSize(limit))
	}
	return text, nil
}
