package jinja

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonWriter writes as json.dumps(ensure_ascii=False) does.
type jsonWriter struct {
	strings.Builder
	item, key string // separators
	indent    string // of one level; with indented, each element is on its own line
	indented  bool
	sorted    bool
	ascii     bool // all else is escaped
}

func filterToJSON(_ *frame, v Value, a arguments) Value {
	a.atMost(4, "ensure_ascii", "indent", "separators", "sort_keys")
	w := &jsonWriter{item: ", ", key: ": ", sorted: truth(a.or(3, "sort_keys", false))}
	switch indent := a.or(1, "indent", nil).(type) {
	case nil:
	case int64:
		w.indented, w.item = true, ","
		w.indent = strings.Repeat(" ", int(min(max(indent, 0), 64)))
	case string:
		w.indented, w.item, w.indent = true, ",", indent
	default:
		fail("tojson: indent is a %s, want an int", typeName(indent))
	}
	if v := a.or(2, "separators", nil); v != nil {
		l, ok := v.(*List)
		if !ok || len(l.Items) != 2 {
			fail("tojson: separators is a %s, want two strings", typeName(v))
		}
		w.item, w.key = needString(l.Items[0]), needString(l.Items[1])
	}
	w.ascii = truth(a.or(0, "ensure_ascii", false))
	w.value(v, 0)
	return w.String()
}

func (w *jsonWriter) value(v Value, depth int) {
	switch v := v.(type) {
	case nil:
		w.WriteString("null")
	case bool:
		fmt.Fprint(w, v)
	case float64:
		w.float(v)
	case int64, BigInt:
		fmt.Fprint(w, v)
	case string:
		w.quoted(v)
	case Markup:
		w.quoted(string(v))
	case *List:
		if v.kind > tuple {
			fail("object of type %s is not JSON serializable", typeName(v))
		}
		w.sequence("[]", len(v.Items), depth, func(i int) { w.value(v.Items[i], depth+1) })
	case *Dict:
		order := make([]int, v.Len())
		for i := range order {
			order[i] = i
		}
		if w.sorted {
			slices.SortFunc(order, func(a, b int) int { return cmp.Compare(v.keys[a], v.keys[b]) })
		}
		w.sequence("{}", v.Len(), depth, func(i int) {
			w.quoted(str(v.key(order[i])))
			w.WriteString(w.key)
			w.value(v.values[order[i]], depth+1)
		})
	default:
		fail("object of type %s is not JSON serializable", typeName(v))
	}
}

func (w *jsonWriter) float(f float64) {
	switch {
	case math.IsNaN(f):
		w.WriteString("NaN")
	case math.IsInf(f, 1):
		w.WriteString("Infinity")
	case math.IsInf(f, -1):
		w.WriteString("-Infinity")
	default:
		w.WriteString(formatFloat(f))
	}
}

func (w *jsonWriter) sequence(ends string, n, depth int, element func(int)) {
	w.WriteByte(ends[0])
	for i := range n {
		if i > 0 {
			w.WriteString(w.item)
		}
		w.line(depth + 1)
		element(i)
	}
	if n > 0 {
		w.line(depth)
	}
	w.WriteByte(ends[1])
}

func (w *jsonWriter) line(depth int) {
	if w.indented {
		w.WriteByte('\n')
		for range depth {
			w.WriteString(w.indent)
		}
	}
}

func (w *jsonWriter) quoted(s string) {
	w.WriteByte('"')
	if w.ascii {
		s = escapeNonASCII(w, s)
	}
	w.escapeControl(s)
	w.WriteByte('"')
}

// escapeControl writes a piece of a string.
func (w *jsonWriter) escapeControl(s string) {
	done := 0
	for i := range len(s) {
		b := s[i]
		if b >= 0x20 && b != '"' && b != '\\' {
			continue
		}
		w.WriteString(s[done:i])
		done = i + 1
		if short := strings.IndexByte("\"\\\n\r\t\f\b", b); short >= 0 {
			w.WriteByte('\\')
			w.WriteByte("\"\\nrtfb"[short])
		} else {
			fmt.Fprintf(w, `\u%04x`, b)
		}
	}
	w.WriteString(s[done:])
}

// escapeNonASCII writes all of s but what is left, which is ASCII.
func escapeNonASCII(w *jsonWriter, s string) string {
	for {
		i := strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
		if i < 0 {
			return s
		}
		before, rest := s[:i], s[i:]
		w.escapeControl(before)
		r, n := utf8.DecodeRuneInString(rest)
		if a, b := utf16.EncodeRune(r); a != unicode.ReplacementChar {
			fmt.Fprintf(w, `\u%04x\u%04x`, a, b)
		} else {
			fmt.Fprintf(w, `\u%04x`, r)
		}
		s = rest[n:]
	}
}
