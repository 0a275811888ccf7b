package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// str is str(v), as {{ v }} prints it.
func str(v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case Markup:
		return string(v)
	case Undefined:
		return ""
	}
	var b strings.Builder
	repr(&b, v)
	return b.String()
}

// repr writes repr(v).
func repr(b *strings.Builder, v Value) {
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case BigInt:
		b.WriteString(string(v))
	case float64:
		b.WriteString(formatFloat(v))
	case string:
		quote(b, v)
	case Undefined:
		b.WriteString("Undefined")
	case *List:
		if v.kind > tuple {
			fail("a %s can't be printed", typeName(v))
		}
		reprList(b, v)
	case *Dict:
		b.WriteByte('{')
		for i := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			repr(b, v.key(i))
			b.WriteString(": ")
			repr(b, v.values[i])
		}
		b.WriteByte('}')
	default:
		fail("a %s can't be printed", typeName(v))
	}
}

func reprList(b *strings.Builder, l *List) {
	ends := "[]"
	if l.kind == tuple {
		ends = "()"
	}
	b.WriteByte(ends[0])
	for i, item := range l.Items {
		if i > 0 {
			b.WriteString(", ")
		}
		repr(b, item)
	}
	if l.kind == tuple && len(l.Items) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(ends[1])
}

// formatFloat is repr of a float.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
	}
	scientific := strconv.FormatFloat(f, 'e', -1, 64)
	_, exponent, _ := strings.Cut(scientific, "e")
	if n, _ := strconv.Atoi(exponent); n < -4 || n >= 16 {
		return scientific
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote writes repr of a string.
func quote(b *strings.Builder, s string) {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b.WriteByte(q)
	for _, r := range s {
		switch {
		case r == rune(q) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			fmt.Fprintf(b, `\U%08x`, r)
		}
	}
	b.WriteByte(q)
}

// typeName is Python's name of a value's type, for errors.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, BigInt:
		return "int"
	case float64:
		return "float"
	case string, Markup:
		return "str"
	case *List:
		return [...]string{"list", "tuple", "dict view", "generator"}[v.kind]
	case *Dict:
		return "dict"
	case Undefined:
		return "undefined value"
	case *namespace:
		return "namespace"
	case *loop:
		return "loop"
	case *callable:
		return "function"
	}
	return fmt.Sprintf("%T", v)
}
