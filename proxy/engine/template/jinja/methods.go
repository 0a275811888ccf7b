package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// methodOf is a method of a type, with the value it is called on.
type methodOf func(f *frame, v Value, a arguments) Value

// method finds a method of a value's type. Methods that change a value don't exist
// in the sandbox that engines render in.
func method(v Value, name string) (methodOf, bool) {
	var m methodOf
	var ok, changes bool
	switch v := v.(type) {
	case string:
		m, ok = stringMethods[name]
	case *Dict:
		m, ok = dictMethods[name]
		changes = slices.Contains([]string{"clear", "pop", "popitem", "setdefault", "update"}, name)
	case *List:
		if v.kind != list {
			return nil, false
		}
		m, ok = listMethods[name]
		changes = slices.Contains([]string{"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}, name)
	}
	if changes {
		return func(*frame, Value, arguments) Value { fail("%s of a %s is not safe", name, typeName(v)); return nil }, true
	}
	return m, ok
}

var dictMethods = map[string]methodOf{
	"keys":   func(f *frame, v Value, _ arguments) Value { return &List{iterate(f, v), view} },
	"values": func(_ *frame, v Value, _ arguments) Value { return &List{slices.Clone(v.(*Dict).values), view} },
	"items":  func(f *frame, v Value, _ arguments) Value { return &List{pairs(f, v.(*Dict)), view} },
	"copy":   func(_ *frame, v Value, _ arguments) Value { return v },
	"get": func(_ *frame, v Value, a arguments) Value {
		a.atMost(2)
		if found, ok := v.(*Dict).get(a.must(0, "key")); ok {
			return found
		}
		return a.or(1, "", nil)
	},
}

var listMethods = map[string]methodOf{
	"index": func(_ *frame, v Value, a arguments) Value {
		a.atMost(1)
		i := slices.IndexFunc(v.(*List).Items, func(x Value) bool { return equal(x, a.must(0, "value")) })
		if i < 0 {
			fail("value is not in list")
		}
		return int64(i)
	},
	"count": func(_ *frame, v Value, a arguments) Value {
		a.atMost(1)
		n := int64(0)
		for _, x := range v.(*List).Items {
			if equal(x, a.must(0, "value")) {
				n++
			}
		}
		return n
	},
	"copy": func(_ *frame, v Value, _ arguments) Value { return v },
}

// isSpace is str.isspace of a character, by which strip and split go.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// strip is one of strip, lstrip and rstrip.
func strip(left, right bool) methodOf {
	return func(_ *frame, v Value, a arguments) Value {
		a.atMost(1)
		cut := isSpace
		if chars := a.or(0, "", nil); chars != nil {
			set := needString(chars)
			cut = func(r rune) bool { return strings.ContainsRune(set, r) }
		}
		s := v.(string)
		if left {
			s = strings.TrimLeftFunc(s, cut)
		}
		if right {
			s = strings.TrimRightFunc(s, cut)
		}
		return s
	}
}

// affix is startswith or endswith.
func affix(has func(s, part string) bool) methodOf {
	return func(_ *frame, v Value, a arguments) Value {
		a.atMost(1)
		if l, ok := a.must(0, "prefix").(*List); ok && l.kind == tuple {
			return slices.ContainsFunc(l.Items, func(p Value) bool { return has(v.(string), needString(p)) })
		}
		return has(v.(string), needString(a.list[0]))
	}
}

// find is find, rfind, index or rindex: offsets count characters.
func find(index func(s, part string) int, must bool) methodOf {
	return func(_ *frame, v Value, a arguments) Value {
		a.atMost(1)
		s := v.(string)
		i := index(s, needString(a.must(0, "sub")))
		if i < 0 {
			if must {
				fail("substring not found")
			}
			return int64(-1)
		}
		return int64(utf8.RuneCountInString(s[:i]))
	}
}

// every is isdigit and the like: true for all characters, of which there are some.
func every(holds func(r rune) bool) methodOf {
	return func(_ *frame, v Value, a arguments) Value {
		a.atMost(0)
		s := v.(string)
		return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !holds(r) })
	}
}

// mapped is a method without arguments that gives another string.
func mapped(to func(string) string) methodOf {
	return func(_ *frame, v Value, a arguments) Value {
		a.atMost(0)
		return to(v.(string))
	}
}

var stringMethods = map[string]methodOf{
	"strip":        strip(true, true),
	"lstrip":       strip(true, false),
	"rstrip":       strip(false, true),
	"startswith":   affix(strings.HasPrefix),
	"endswith":     affix(strings.HasSuffix),
	"find":         find(strings.Index, false),
	"rfind":        find(strings.LastIndex, false),
	"index":        find(strings.Index, true),
	"rindex":       find(strings.LastIndex, true),
	"lower":        mapped(lowered),
	"upper":        mapped(uppered),
	"title":        mapped(titled),
	"capitalize":   mapped(capitalized),
	"isdigit":      every(unicode.IsDigit),
	"isnumeric":    every(unicode.IsNumber),
	"isalpha":      every(unicode.IsLetter),
	"isalnum":      every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
	"isspace":      every(isSpace),
	"split":        split(false),
	"rsplit":       split(true),
	"splitlines":   splitLines,
	"replace":      replaceMethod,
	"join":         joinMethod,
	"count":        countMethod,
	"format":       formatMethod,
	"removeprefix": cutAffix(strings.TrimPrefix),
	"removesuffix": cutAffix(strings.TrimSuffix),
	"isupper": func(_ *frame, v Value, _ arguments) Value {
		return isCase(v.(string), unicode.IsUpper, unicode.IsLower)
	},
	"islower": func(_ *frame, v Value, _ arguments) Value {
		return isCase(v.(string), unicode.IsLower, unicode.IsUpper)
	},
}

func cutAffix(cut func(s, part string) string) methodOf {
	return func(_ *frame, v Value, a arguments) Value { return cut(v.(string), needString(a.must(0, "prefix"))) }
}
