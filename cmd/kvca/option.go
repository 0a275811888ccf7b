package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// option is one setting of `kvca serve`, whichever way it is given: as the flag
// --name, as the variable KVCA_NAME or as the key name of a file.
type option struct {
	// name is the flag's name.
	name string
	// value stands for the value in help; a switch has none.
	value string
	// def is the default as one would write it, empty where there is none.
	def string
	// shown describes a default that is not a fixed text.
	shown string
	// repeats is whether there may be several: the flag is given again, the
	// variable is cut at commas, the file has a list.
	repeats bool
	// usage is one sentence for help and for the table of flags.
	usage string
	// live is whether a change of the file takes effect while the node runs.
	live bool
	// set reads one value into the settings.
	set func(*settings, string) error
	// setMapping reads a mapping of the file, for options that take some.
	setMapping func(*settings, item) []fault
}

// key is the option's name in a file.
func (o *option) key() string { return strings.ReplaceAll(o.name, "-", "_") }

// variable is the option's name in the environment.
func (o *option) variable() string { return "KVCA_" + strings.ToUpper(o.key()) }

// isSwitch is whether the flag stands for true without a value.
func (o *option) isSwitch() bool { return o.value == "" }

// defaultText is the default for people.
func (o *option) defaultText() string {
	if o.isSwitch() {
		return cmp.Or(o.shown, o.def, "false")
	}
	return cmp.Or(o.shown, o.def)
}

// setter reads one value into the settings.
type setter = func(*settings, string) error

// text makes the setter of a text that check approves of.
func text(at func(*settings) *string, check func(string) error) setter {
	return func(s *settings, v string) error {
		if err := check(v); err != nil {
			return err
		}
		*at(s) = v
		return nil
	}
}

// number makes the setter of anything that is read from text, ordered, and
// bounded.
func number[T cmp.Ordered](read func(string) (T, error), at func(*settings) *T, least, most T) setter {
	return func(s *settings, v string) error {
		n, err := read(v)
		if err != nil {
			return err
		}
		if n < least || n > most {
			return fmt.Errorf("%q is out of range: want %v to %v", v, least, most)
		}
		*at(s) = n
		return nil
	}
}

// sizeBetween makes the setter of a number of bytes.
func sizeBetween(at func(*settings) *int64, least, most int64) setter {
	return func(s *settings, v string) error {
		n, err := readSize(v)
		if err != nil {
			return err
		}
		if n < least || n > most {
			return fmt.Errorf("%q is out of range: want %s to %s", v, showSize(least), showSize(most))
		}
		*at(s) = n
		return nil
	}
}

// showSize writes a size in the largest unit that it is a whole number of.
func showSize(n int64) string {
	for i := len(sizeUnits) - 1; i >= 0; i-- {
		if u := sizeUnits[i]; n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// durationBetween makes the setter of a duration.
func durationBetween(at func(*settings) *time.Duration, least, most time.Duration) setter {
	return number(readDuration, at, least, most)
}

// toggle makes the setter of a switch.
func toggle(at func(*settings) *bool) setter {
	return func(s *settings, v string) error {
		on, err := readBool(v)
		if err != nil {
			return err
		}
		*at(s) = on
		return nil
	}
}

// pair makes the setter of LEFT=RIGHT, where each left side may come once. Left
// names may hold a = themselves where last is true, right ones where it is not.
func pair(left, right string, last bool, put func(s *settings, l, r string) (again bool, err error)) setter {
	cut := strings.Index
	if last {
		cut = strings.LastIndex
	}
	return func(s *settings, v string) error {
		i := cut(v, "=")
		if i <= 0 || i == len(v)-1 {
			return fmt.Errorf("%q: want %s=%s", v, left, right)
		}
		again, err := put(s, v[:i], v[i+1:])
		if err == nil && again {
			err = fmt.Errorf("%q: %s is given twice: keep one", v, v[:i])
		}
		return err
	}
}
