package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// optionFlag is the flag of an option. Its values stay text: the option reads
// them, so that a flag, a variable and a file are judged alike.
type optionFlag struct {
	o      *option
	values []string
	given  bool
}

// optionFlags are the flags of one command line.
type optionFlags map[string]*optionFlag

// flagsOf makes flags of the options: for the command, and to read them from.
func flagsOf(table []*option) ([]cli.Flag, optionFlags) {
	list, byName := make([]cli.Flag, len(table)), make(optionFlags, len(table))
	for i, o := range table {
		f := &optionFlag{o: o}
		list[i], byName[o.name] = f, f
	}
	return list, byName
}

// of is what the command line says of o.
func (fs optionFlags) of(o *option) ([]string, bool) {
	f := fs[o.name]
	return f.values, f.given
}

// Apply adds the flag to a set, as cli.Flag.
func (f *optionFlag) Apply(set *flag.FlagSet) error {
	f.values, f.given = nil, false
	set.Var(optionValue{f}, f.o.name, f.o.usage)
	return nil
}

// optionValue takes a flag's values. Of a flag that does not repeat the last
// counts.
type optionValue struct{ *optionFlag }

func (v optionValue) Set(text string) error {
	if !v.o.repeats {
		v.values = v.values[:0]
	}
	v.values, v.given = append(v.values, text), true
	return nil
}

func (v optionValue) String() string {
	if v.optionFlag == nil {
		return ""
	}
	return strings.Join(v.values, ",")
}

func (v optionValue) IsBoolFlag() bool { return v.o.isSwitch() }

// String is the flag's line of help: its form, a tab, and what it does.
func (f *optionFlag) String() string {
	form := strings.TrimSpace("--" + f.o.name + " " + f.o.value)
	more := ""
	switch {
	case f.o.repeats:
		more = "; may be repeated"
	case !f.o.isSwitch(), f.o.shown != "":
		more = fmt.Sprintf(" (default: %s)", f.o.defaultText())
	}
	return fmt.Sprintf("%s\t%s%s [$%s]", form, f.o.usage, more, f.o.variable())
}

// What completion and help ask of a flag.

func (f *optionFlag) Names() []string        { return []string{f.o.name} }
func (f *optionFlag) IsSet() bool            { return f.given }
func (f *optionFlag) IsVisible() bool        { return true }
func (f *optionFlag) GetCategory() string    { return "" }
func (f *optionFlag) TakesValue() bool       { return !f.o.isSwitch() }
func (f *optionFlag) GetUsage() string       { return f.o.usage }
func (f *optionFlag) GetValue() string       { return "" }
func (f *optionFlag) GetDefaultText() string { return f.o.defaultText() }
func (f *optionFlag) GetEnvVars() []string   { return nil }
