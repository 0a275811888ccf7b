package jinja

import (
	"fmt"
	"strings"
	"time"
)

// globals are the functions that every template sees.
var globals = map[string]Value{}

func init() {
	for name, do := range map[string]func(f *frame, a arguments) Value{
		"namespace":       globalNamespace,
		"dict":            func(f *frame, a arguments) Value { return &globalNamespace(f, a).(*namespace).Dict },
		"range":           globalRange,
		"joiner":          globalJoiner,
		"cycler":          func(*frame, arguments) Value { fail("cycler is not supported"); return nil },
		"lipsum":          func(*frame, arguments) Value { fail("lipsum is random"); return nil },
		"raise_exception": globalRaise,
		"strftime_now":    globalNow,
	} {
		globals[name] = &callable{name, do}
	}
}

func globalNamespace(_ *frame, a arguments) Value {
	ns := &namespace{}
	for _, v := range a.positional() {
		d, ok := v.(*Dict)
		if !ok {
			fail("got a %s, want a dict", typeName(v))
		}
		for i := range d.keys {
			ns.set(d.key(i), d.values[i])
		}
	}
	for i, n := range a.names {
		ns.Set(n, a.list[len(a.list)-len(a.names)+i])
	}
	return ns
}

// maxRange is the sandbox's.
const maxRange = 100_000

func globalRange(f *frame, a arguments) Value {
	a.atMost(3)
	if len(a.list) == 0 {
		fail("range without arguments")
	}
	start, stop, step := int64(0), needInt(a.list[0]), int64(1)
	if len(a.list) > 1 {
		start, stop = stop, needInt(a.list[1])
	}
	if len(a.list) > 2 {
		step = needInt(a.list[2])
	}
	if step == 0 {
		fail("range step must not be zero")
	}
	l := NewList()
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(l.Items) == maxRange {
			fail("range of more than %d", maxRange)
		}
		l.Items = append(l.Items, i)
	}
	f.run.step(len(l.Items))
	return l
}

func globalJoiner(_ *frame, a arguments) Value {
	a.atMost(1, "sep")
	sep, used := a.or(0, "sep", ", "), false
	return &callable{"joiner", func(*frame, arguments) Value {
		if !used {
			used = true
			return ""
		}
		return sep
	}}
}

func globalRaise(_ *frame, a arguments) Value {
	panic(fault{fmt.Errorf("%w: %s", ErrRaised, str(a.must(0, "message")))})
}

func globalNow(f *frame, a arguments) Value {
	a.atMost(1, "format")
	return strftime(f.run.now(), needString(a.must(0, "format")))
}

var timeLayouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM",
	'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'j': "002",
	'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'e': "_2",
}

// strftime formats as Python does in the C locale.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		verb := format[i]
		bare := verb == '-' && i+1 < len(format)
		if bare { // without leading zeros
			i++
			verb = format[i]
		}
		layout, ok := timeLayouts[verb]
		switch {
		case verb == '%':
			b.WriteByte('%')
		case !ok:
			fail("strftime: %%%c is not supported", verb)
		case bare:
			s := strings.TrimLeft(t.Format(layout), "0")
			if s == "" {
				s = "0"
			}
			b.WriteString(s)
		default:
			b.WriteString(t.Format(layout))
		}
	}
	return b.String()
}
