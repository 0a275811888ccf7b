package jinja

import "unicode/utf8"

// attribute is v.name: a method or member of the type first, then a key.
func attribute(v Value, name string) Value {
	if found, ok := memberOf(v, name); ok {
		return found
	}
	switch v := v.(type) {
	case Undefined:
		fail("%q is undefined", v.name)
	case *Dict:
		if found, ok := v.Get(name); ok {
			return found
		}
	case *namespace:
		if found, ok := v.Get(name); ok {
			return found
		}
	}
	return Undefined{name}
}

// item is v[key]: a key first, then a method or member of the type.
func item(v, key Value) Value {
	switch v := v.(type) {
	case Undefined:
		fail("%q is undefined", v.name)
	case *Dict:
		if found, ok := v.get(key); ok {
			return found
		}
	case *List:
		if v.kind > tuple {
			break
		}
		if i, ok := toIndex(key, len(v.Items)); ok {
			return v.Items[i]
		}
	case string:
		if c, ok := characterAt(v, key); ok {
			return c
		}
	}
	if k, ok := key.(string); ok {
		if found, ok := memberOf(v, k); ok {
			return found
		}
		return Undefined{k}
	}
	return Undefined{"the item"}
}

func memberOf(v Value, name string) (Value, bool) {
	if l, ok := v.(*loop); ok {
		return l.member(name)
	}
	m, ok := method(v, name)
	if !ok {
		return nil, false
	}
	return &callable{name, func(f *frame, a arguments) Value { return m(f, v, a) }}, true
}

// toIndex resolves an index, which counts from the end if negative.
func toIndex(key Value, n int) (int, bool) {
	i, ok := toInt(key)
	if !ok {
		return 0, false
	}
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n)
}

// toInt is an integer's or a bool's value.
func toInt(v Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func needInt(v Value) int64 {
	n, ok := toInt(v)
	if !ok {
		fail("got a %s, want an int", typeName(v))
	}
	return n
}

func needString(v Value) string {
	s, ok := v.(string)
	if !ok {
		fail("got a %s, want a str", typeName(v))
	}
	return s
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func characterAt(s string, key Value) (string, bool) {
	// The first character is mostly what is asked for, and needs no look at the rest.
	if key == Value(int64(0)) && s != "" {
		_, n := utf8.DecodeRuneInString(s)
		return s[:n], true
	}
	if isASCII(s) {
		i, ok := toIndex(key, len(s))
		if !ok {
			return "", false
		}
		return s[i : i+1], true
	}
	runes := []rune(s)
	i, ok := toIndex(key, len(runes))
	if !ok {
		return "", false
	}
	return string(runes[i]), true
}

// slice is v[start:stop:step].
func slice(v, start, stop, step Value) Value {
	switch v := v.(type) {
	case Undefined:
		fail("%q is undefined", v.name)
	case *List:
		if v.kind > tuple {
			break
		}
		r := spanOf(len(v.Items), start, stop, step)
		items := make([]Value, 0, r.count())
		r.each(func(i int) { items = append(items, v.Items[i]) })
		return &List{items, v.kind}
	case string:
		return sliceString(v, start, stop, step)
	}
	return Undefined{"the slice"}
}

func sliceString(s string, start, stop, step Value) string {
	if isASCII(s) {
		r := spanOf(len(s), start, stop, step)
		if r.step == 1 {
			return s[r.start : r.start+r.count()]
		}
		b := make([]byte, 0, r.count())
		r.each(func(i int) { b = append(b, s[i]) })
		return string(b)
	}
	runes := []rune(s)
	r := spanOf(len(runes), start, stop, step)
	some := make([]rune, 0, r.count())
	r.each(func(i int) { some = append(some, runes[i]) })
	return string(some)
}

// span is a resolved slice.
type span struct{ start, stop, step int }

func spanOf(n int, start, stop, step Value) span {
	r := span{step: 1}
	if step != nil {
		// A step beyond the length is like the length itself, in the same direction.
		r.step = int(min(max(needInt(step), int64(-n-1)), int64(n+1)))
	}
	if r.step == 0 {
		fail("slice step cannot be zero")
	}
	low, high := 0, n
	if r.step < 0 {
		low, high = -1, n-1
	}
	bound := func(v Value, otherwise int) int {
		if v == nil {
			return otherwise
		}
		i := needInt(v)
		if i < 0 {
			i += int64(n)
		}
		return int(min(max(i, int64(low)), int64(high)))
	}
	if r.step > 0 {
		r.start, r.stop = bound(start, low), bound(stop, high)
	} else {
		r.start, r.stop = bound(start, high), bound(stop, low)
	}
	return r
}

func (r span) count() int {
	if r.step > 0 {
		return max(0, (r.stop-r.start+r.step-1)/r.step)
	}
	return max(0, (r.start-r.stop-r.step-1)/-r.step)
}

func (r span) each(do func(i int)) {
	for k := range r.count() {
		do(r.start + k*r.step)
	}
}

// iterate is what a loop goes over.
func iterate(f *frame, v Value) []Value {
	switch v := v.(type) {
	case Undefined:
		return nil
	case *List:
		f.run.step(len(v.Items) / stepBytes)
		items := v.Items
		if v.kind == generator {
			v.Items = nil
		}
		return items
	case *Dict:
		f.run.step(v.Len())
		keys := make([]Value, v.Len())
		for i := range keys {
			keys[i] = v.key(i)
		}
		return keys
	case string:
		f.run.step(len(v))
		items := make([]Value, 0, len(v))
		for _, r := range v {
			items = append(items, string(r))
		}
		return items
	}
	fail("a %s is not iterable", typeName(v))
	return nil
}

// length is len(v).
func length(v Value) int64 {
	switch v := v.(type) {
	case Undefined:
		return 0
	case *List:
		if v.kind == generator {
			break
		}
		return int64(len(v.Items))
	case *Dict:
		return int64(v.Len())
	case string:
		return int64(utf8.RuneCountInString(v))
	}
	fail("a %s has no length", typeName(v))
	return 0
}
