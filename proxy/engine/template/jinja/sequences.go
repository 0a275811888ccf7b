package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// path reads an attribute's name as filters take it: names and numbers with points
// between.
func path(name Value) func(v Value) Value { return pathOr(name, nil) }

// pathOr is path with what stands for a member that isn't there, nil for nothing.
func pathOr(name, otherwise Value) func(v Value) Value {
	var keys []Value
	if n, ok := toInt(name); ok {
		keys = []Value{n}
	} else {
		for _, k := range strings.Split(needString(name), ".") {
			if n, err := strconv.ParseInt(k, 10, 64); err == nil {
				keys = append(keys, n)
			} else {
				keys = append(keys, k)
			}
		}
	}
	return func(v Value) Value {
		for _, k := range keys {
			if v = item(v, k); otherwise != nil && isUndefined(v) {
				v = otherwise
			}
		}
		return v
	}
}

// by is path of an argument, if there is one.
func by(a *arguments, n int) func(v Value) Value {
	if name := a.or(n, "attribute", nil); name != nil {
		return path(name)
	}
	return func(v Value) Value { return v }
}

func filterJoin(f *frame, v Value, a arguments) Value {
	a.atMost(2, "d", "attribute")
	of := by(&a, 1)
	var parts []string
	for _, x := range iterate(f, v) {
		parts = append(parts, str(of(x)))
	}
	return joined(f, parts, str(a.or(0, "d", "")))
}

func filterItems(f *frame, v Value, a arguments) Value {
	a.atMost(0)
	switch v := v.(type) {
	case Undefined:
		return &List{kind: generator}
	case *Dict:
		return &List{pairs(f, v), generator}
	}
	fail("can only get item pairs from a mapping")
	return nil
}

// pairs are the keys and values of a dict.
func pairs(f *frame, d *Dict) []Value {
	f.run.step(d.Len())
	items := make([]Value, d.Len())
	for i := range items {
		items[i] = newTuple(d.key(i), d.values[i])
	}
	return items
}

func filterFirst(f *frame, v Value, _ arguments) Value {
	if l, ok := v.(*List); ok && l.kind == generator && len(l.Items) > 0 {
		first := l.Items[0]
		l.Items = l.Items[1:]
		return first
	}
	if items := iterate(f, v); len(items) > 0 {
		return items[0]
	}
	return Undefined{"the first of none"}
}

func filterLast(f *frame, v Value, _ arguments) Value {
	if l, ok := v.(*List); ok && l.kind == generator {
		fail("the last of a generator")
	}
	if items := iterate(f, v); len(items) > 0 {
		return items[len(items)-1]
	}
	return Undefined{"the last of none"}
}

func filterReverse(f *frame, v Value, _ arguments) Value {
	if s, ok := v.(string); ok {
		return sliceString(s, nil, nil, int64(-1))
	}
	items := clone(iterate(f, v))
	slices.Reverse(items)
	return &List{items, generator}
}

// folded is a key to sort or compare by: strings without case, unless asked for it.
func folded(v Value, caseSensitive bool) Value {
	if s, ok := v.(string); ok && !caseSensitive {
		return lowered(s)
	}
	return v
}

func filterSort(f *frame, v Value, a arguments) Value {
	a.atMost(3, "reverse", "case_sensitive", "attribute")
	of, exact := by(&a, 2), truth(a.or(1, "case_sensitive", false))
	items := clone(iterate(f, v))
	f.run.step(8 * len(items))
	sign := 1
	if truth(a.or(0, "reverse", false)) {
		sign = -1
	}
	slices.SortStableFunc(items, func(x, y Value) int {
		return sign * compare(folded(of(x), exact), folded(of(y), exact))
	})
	return NewList(items...)
}

func filterUnique(f *frame, v Value, a arguments) Value {
	a.atMost(2, "case_sensitive", "attribute")
	of, exact := by(&a, 1), truth(a.or(0, "case_sensitive", false))
	var items, keys []Value
	for _, x := range iterate(f, v) {
		k := folded(of(x), exact)
		f.run.step(1 + len(keys)/8)
		if !slices.ContainsFunc(keys, func(known Value) bool { return equal(known, k) }) {
			items, keys = append(items, x), append(keys, k)
		}
	}
	return &List{items, generator}
}

// extreme is min or max.
func extreme(sign int) filter {
	return func(f *frame, v Value, a arguments) Value {
		a.atMost(2, "case_sensitive", "attribute")
		of, exact := by(&a, 1), truth(a.or(0, "case_sensitive", false))
		items := iterate(f, v)
		if len(items) == 0 {
			return Undefined{"the extreme of none"}
		}
		best := items[0]
		for _, x := range items[1:] {
			if sign*compare(folded(of(x), exact), folded(of(best), exact)) > 0 {
				best = x
			}
		}
		return best
	}
}

func filterSum(f *frame, v Value, a arguments) Value {
	a.atMost(2, "attribute", "start")
	of := by(&a, 0)
	total := a.or(1, "start", int64(0))
	for _, x := range iterate(f, v) {
		total = add(f, total, of(x))
	}
	return total
}

func filterDictSort(f *frame, v Value, a arguments) Value {
	a.atMost(3, "case_sensitive", "by", "reverse")
	d, ok := v.(*Dict)
	if !ok {
		fail("dictsort of a %s", typeName(v))
	}
	exact, at := truth(a.or(0, "case_sensitive", false)), 0
	if a.or(1, "by", "key") == Value("value") {
		at = 1
	}
	sign := 1
	if truth(a.or(2, "reverse", false)) {
		sign = -1
	}
	sorted := pairs(f, d)
	slices.SortStableFunc(sorted, func(x, y Value) int {
		return sign * compare(folded(x.(*List).Items[at], exact), folded(y.(*List).Items[at], exact))
	})
	return NewList(sorted...)
}

func filterBatch(f *frame, v Value, a arguments) Value {
	a.atMost(1, "linecount")
	n := needInt(a.must(0, "linecount"))
	if n <= 0 {
		fail("batch of %d items", n)
	}
	l := &List{kind: generator}
	for items := iterate(f, v); len(items) > 0; {
		k := min(len(items), int(n))
		l.Items = append(l.Items, NewList(clone(items[:k])...))
		items = items[k:]
	}
	return l
}

func filterMap(f *frame, v Value, a arguments) Value {
	if !truth(v) {
		return &List{kind: generator}
	}
	items := iterate(f, v)
	f.run.step(len(items))
	out := make([]Value, len(items))
	if name, ok := a.named("attribute"); ok {
		otherwise, _ := a.named("default")
		of := pathOr(name, otherwise)
		for i, x := range items {
			out[i] = of(x)
		}
		return &List{out, generator}
	}
	do := filters[needString(a.must(0, "name"))]
	if do == nil {
		fail("map: filter %q is not supported", a.list[0])
	}
	rest := arguments{a.list[1:], a.names}
	for i, x := range items {
		out[i] = do(f, x, rest)
	}
	return &List{out, generator}
}

func isUndefined(v Value) bool { _, ok := v.(Undefined); return ok }

// choose is select, reject, selectattr or rejectattr.
func choose(keep, attr bool) filter {
	return func(f *frame, v Value, a arguments) Value {
		of := func(v Value) Value { return v }
		if attr {
			of = path(a.must(0, "attribute"))
			a.list = a.list[1:]
		}
		holds := func(v Value) bool { return truth(v) }
		if len(a.list) > 0 {
			do := tests[needString(a.list[0])]
			if do == nil {
				fail("test %q is not supported", a.list[0])
			}
			rest := arguments{a.list[1:], a.names}
			holds = func(v Value) bool { return truth(do(f, v, rest)) }
		}
		l := &List{kind: generator}
		if !truth(v) {
			return l
		}
		for _, x := range iterate(f, v) {
			f.run.step(1)
			if holds(of(x)) == keep {
				l.Items = append(l.Items, x)
			}
		}
		return l
	}
}
