package jinja

import (
	"strings"
	"unicode"
)

// test is what "v is name(arguments)" asks.
type test func(f *frame, v Value, a arguments) Value

// plainTest is a test without arguments.
func plainTest(holds func(v Value) bool) test {
	return func(_ *frame, v Value, a arguments) Value {
		a.atMost(0)
		return holds(v)
	}
}

// tests is filled below, since select and its like refer to it.
var tests map[string]test

func init() {
	tests = map[string]test{
		"defined":   plainTest(func(v Value) bool { _, no := v.(Undefined); return !no }),
		"undefined": plainTest(func(v Value) bool { _, ok := v.(Undefined); return ok }),
		"none":      plainTest(func(v Value) bool { return v == nil }),
		"boolean":   plainTest(func(v Value) bool { _, ok := v.(bool); return ok }),
		"true":      plainTest(func(v Value) bool { return v == Value(true) }),
		"false":     plainTest(func(v Value) bool { return v == Value(false) }),
		"string":    plainTest(func(v Value) bool { return typeName(v) == "str" }),
		"mapping":   plainTest(func(v Value) bool { _, ok := v.(*Dict); return ok }),
		"float":     plainTest(func(v Value) bool { _, ok := v.(float64); return ok }),
		"integer":   plainTest(isInteger),
		"number":    plainTest(func(v Value) bool { _, ok := toFloat(v); _, big := v.(BigInt); return ok || big }),
		"iterable":  plainTest(isIterable),
		"sequence":  plainTest(isSequence),
		"callable":  plainTest(func(v Value) bool { _, ok := v.(*callable); return ok }),
		"odd":       plainTest(func(v Value) bool { return needInt(modulo(nil, v, int64(2))) == 1 }),
		"even":      plainTest(func(v Value) bool { return needInt(modulo(nil, v, int64(2))) == 0 }),
		"upper":     plainTest(func(v Value) bool { return isCase(str(v), unicode.IsUpper, unicode.IsLower) }),
		"lower":     plainTest(func(v Value) bool { return isCase(str(v), unicode.IsLower, unicode.IsUpper) }),
		"filter":    plainTest(func(v Value) bool { return filters[needString(v)] != nil }),
		"test":      plainTest(func(v Value) bool { return tests[needString(v)] != nil }),
		"sameas":    comparing(same),
		"divisibleby": func(f *frame, v Value, a arguments) Value {
			return needInt(modulo(f, v, a.must(0, "num"))) == 0
		},
	}
	for op, names := range map[string][]string{
		"==": {"eq", "equalto"}, "!=": {"ne"}, "in": {"in"},
		"<": {"lt", "lessthan"}, "<=": {"le"}, ">": {"gt", "greaterthan"}, ">=": {"ge"},
	} {
		for _, n := range append(names, op) {
			tests[n] = comparing(comparisons[op])
		}
	}
}

func comparing(holds func(a, b Value) bool) test {
	return func(_ *frame, v Value, a arguments) Value {
		a.atMost(1, "other")
		return holds(v, a.must(0, "other"))
	}
}

func isInteger(v Value) bool {
	switch v.(type) {
	case int64, BigInt:
		return true
	}
	return false
}

func isSequence(v Value) bool {
	if l, ok := v.(*List); ok {
		return l.kind <= tuple
	}
	return isIterable(v)
}

func isIterable(v Value) bool {
	switch v.(type) {
	case Undefined, string, Markup, *List, *Dict:
		return true
	}
	return false
}

// same is a is b, as far as values tell: small constants are the same object.
func same(a, b Value) bool {
	switch a.(type) {
	case nil, bool, *List, *Dict:
		return a == b
	}
	fail("sameas of a %s is not supported", typeName(a))
	return false
}

// isCase is str.isupper with the functions of upper case: some letter of that case,
// none of the other.
func isCase(s string, of, other func(rune) bool) bool {
	return strings.ContainsFunc(s, of) && !strings.ContainsFunc(s, func(r rune) bool { return other(r) || unicode.IsTitle(r) })
}
