package jinja

import (
	"math"
	"strconv"
	"strings"
)

// filter is what "v | name(arguments)" gives.
type filter func(f *frame, v Value, a arguments) Value

// filters is filled here since map and its like refer to it.
var filters map[string]filter

func init() {
	filters = map[string]filter{
		"tojson":     filterToJSON,
		"default":    filterDefault,
		"d":          filterDefault,
		"length":     func(_ *frame, v Value, _ arguments) Value { return length(v) },
		"count":      func(_ *frame, v Value, _ arguments) Value { return length(v) },
		"string":     func(_ *frame, v Value, _ arguments) Value { return str(v) },
		"safe":       func(_ *frame, v Value, _ arguments) Value { return Markup(str(v)) },
		"escape":     filterEscape,
		"e":          filterEscape,
		"format":     filterFormat,
		"lower":      onString(lowered),
		"upper":      onString(uppered),
		"title":      onString(titledBySpace),
		"capitalize": onString(capitalized),
		"trim":       filterTrim,
		"replace":    filterReplace,
		"indent":     filterIndent,
		"int":        filterInt,
		"float":      filterFloat,
		"abs":        filterAbs,
		"round":      filterRound,
		"join":       filterJoin,
		"items":      filterItems,
		"list":       func(f *frame, v Value, _ arguments) Value { return NewList(clone(iterate(f, v))...) },
		"first":      filterFirst,
		"last":       filterLast,
		"reverse":    filterReverse,
		"sort":       filterSort,
		"unique":     filterUnique,
		"min":        extreme(-1),
		"max":        extreme(1),
		"sum":        filterSum,
		"dictsort":   filterDictSort,
		"batch":      filterBatch,
		"map":        filterMap,
		"select":     choose(true, false),
		"reject":     choose(false, false),
		"selectattr": choose(true, true),
		"rejectattr": choose(false, true),
		"attr":       func(_ *frame, v Value, a arguments) Value { return attribute(v, needString(a.must(0, "name"))) },
		"wordcount":  func(_ *frame, v Value, _ arguments) Value { return int64(len(strings.FieldsFunc(str(v), isSpace))) },
	}
}

func clone(items []Value) []Value { return append([]Value(nil), items...) }

func onString(to func(string) string) filter {
	return func(f *frame, v Value, a arguments) Value {
		a.atMost(0)
		s := str(v)
		f.run.grown(len(s))
		return to(s)
	}
}

func filterEscape(_ *frame, v Value, _ arguments) Value {
	if m, ok := v.(Markup); ok {
		return m
	}
	return escaped(str(v))
}

func filterFormat(f *frame, v Value, a arguments) Value {
	if len(a.names) > 0 {
		fail("format with names is not supported")
	}
	return modulo(f, str(v), newTuple(a.list...))
}

func filterDefault(_ *frame, v Value, a arguments) Value {
	a.atMost(2, "default_value", "boolean")
	_, undefined := v.(Undefined)
	if undefined || truth(a.or(1, "boolean", false)) && !truth(v) {
		return a.or(0, "default_value", "")
	}
	return v
}

func filterTrim(f *frame, v Value, a arguments) Value {
	a.atMost(1, "chars")
	args := arguments{list: []Value{a.or(0, "chars", nil)}}
	return strip(true, true)(f, str(v), args)
}

func filterReplace(f *frame, v Value, a arguments) Value {
	a.atMost(3, "old", "new", "count")
	return replaced(f, str(v), str(a.must(0, "old")), str(a.must(1, "new")), a.or(2, "count", nil))
}

func filterIndent(f *frame, v Value, a arguments) Value {
	a.atMost(3, "width", "first", "blank")
	pad, ok := a.or(0, "width", int64(4)).(string)
	if !ok {
		pad = strings.Repeat(" ", int(min(max(needInt(a.or(0, "width", int64(4))), 0), 1<<10)))
	}
	lines := splitLines(f, str(v)+"\n", arguments{}).(*List).Items
	blank := truth(a.or(2, "blank", false))
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = l.(string)
		if i > 0 && (blank || parts[i] != "") {
			parts[i] = pad + parts[i]
		}
	}
	s := joined(f, parts, "\n")
	if truth(a.or(1, "first", false)) {
		s = pad + s
	}
	return s
}

// filterInt is int(v), and the default where v is no number.
func filterInt(_ *frame, v Value, a arguments) Value {
	a.atMost(1, "default")
	otherwise := a.or(0, "default", int64(0))
	switch v := v.(type) {
	case Undefined:
		fail("%q is undefined", v.name)
	case BigInt:
		return v
	case float64:
		if math.IsNaN(v) || math.Abs(v) >= math.MaxInt64 {
			fail("int of %v is not supported", v)
		}
		return int64(v)
	case string:
		s := strings.TrimFunc(v, isSpace)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		if x, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(x) < math.MaxInt64 {
			return int64(x)
		}
		return otherwise
	}
	if n, ok := toInt(v); ok {
		return n
	}
	return otherwise
}

func filterFloat(_ *frame, v Value, a arguments) Value {
	a.atMost(1, "default")
	if s, ok := v.(string); ok {
		if x, err := strconv.ParseFloat(strings.TrimFunc(s, isSpace), 64); err == nil {
			return x
		}
	}
	if u, ok := v.(Undefined); ok {
		fail("%q is undefined", u.name)
	}
	if x, ok := toFloat(v); ok {
		return x
	}
	return a.or(0, "default", 0.0)
}

func filterAbs(_ *frame, v Value, a arguments) Value {
	a.atMost(0)
	if x, ok := v.(float64); ok {
		return math.Abs(x)
	}
	if n := needInt(v); n < 0 {
		return signed("-", v)
	}
	return signed("+", v)
}

// filterRound rounds half to even, as Python's round does, or down or up.
func filterRound(_ *frame, v Value, a arguments) Value {
	a.atMost(2, "precision", "method")
	x, ok := toFloat(v)
	digits := needInt(a.or(0, "precision", int64(0)))
	if !ok || digits < 0 || digits > 15 {
		fail("round of a %s to %d digits is not supported", typeName(v), digits)
	}
	scale := math.Pow(10, float64(digits))
	switch how := str(a.or(1, "method", "common")); how {
	case "common":
		if n, whole := toInt(v); whole {
			return n
		}
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', int(digits), 64), 64)
		return rounded
	case "ceil":
		return math.Ceil(x*scale) / scale
	case "floor":
		return math.Floor(x*scale) / scale
	default:
		fail("round: method %q, want common, ceil or floor", how)
		return nil
	}
}
