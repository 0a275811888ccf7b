package jinja

import (
	"cmp"
	"math"
	"strings"
	"unicode/utf8"
)

// operators are the binary ones; what Python has no meaning for fails.
var operators = map[string]func(f *frame, a, b Value) Value{
	"+": add,
	"*": multiply,
	"-": func(_ *frame, a, b Value) Value {
		return arithmetic("-", a, b, subtractInt, func(x, y float64) float64 { return x - y })
	},
	"/": func(_ *frame, a, b Value) Value {
		x, y := operands("/", a, b)
		if y == 0 {
			fail("division by zero")
		}
		return x / y
	},
	"//": func(_ *frame, a, b Value) Value {
		return arithmetic("//", a, b, floorInt, func(x, y float64) float64 { return math.Floor(x / y) })
	},
	"%":  modulo,
	"**": power,
}

func subtractInt(x, y int64) (int64, bool) { d := x - y; return d, (x < y) == (d < 0) || x == y }

func floorInt(x, y int64) (int64, bool) {
	if x == math.MinInt64 && y == -1 {
		return 0, false
	}
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q, true
}

func multiplyInt(x, y int64) (int64, bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	p := x * y
	return p, p/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
}

// operands are both as floats.
func operands(op string, a, b Value) (x, y float64) {
	x, okX := toFloat(a)
	y, okY := toFloat(b)
	if !okX || !okY {
		fail("%s between %s and %s", op, typeName(a), typeName(b))
	}
	return x, y
}

func toFloat(v Value) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	n, ok := toInt(v)
	return float64(n), ok
}

// arithmetic calculates with integers if both are, else with floats.
func arithmetic(op string, a, b Value, ints func(x, y int64) (int64, bool), floats func(x, y float64) float64) Value {
	x, okX := toInt(a)
	y, okY := toInt(b)
	divides := op == "//" || op == "%"
	if okX && okY {
		if divides && y == 0 {
			fail("division by zero")
		}
		n, ok := ints(x, y)
		if !ok {
			fail("%d %s %d is beyond 64 bits", x, op, y)
		}
		return n
	}
	fx, fy := operands(op, a, b)
	if divides && fy == 0 {
		fail("division by zero")
	}
	return floats(fx, fy)
}

func add(f *frame, a, b Value) Value {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			f.run.grown(len(x) + len(y))
			return x + y
		}
		if y, ok := b.(Markup); ok {
			return addMarkup(f, escaped(x), y)
		}
	case Markup:
		switch y := b.(type) {
		case string:
			return addMarkup(f, x, escaped(y))
		case Markup:
			return addMarkup(f, x, y)
		}
	case *List:
		if y, ok := b.(*List); ok && x.kind == y.kind && x.kind <= tuple {
			f.run.grown(16 * (len(x.Items) + len(y.Items)))
			items := append(make([]Value, 0, len(x.Items)+len(y.Items)), x.Items...)
			return &List{append(items, y.Items...), x.kind}
		}
	}
	return arithmetic("+", a, b, func(x, y int64) (int64, bool) {
		s := x + y
		return s, (s > x) == (y > 0) || y == 0
	}, func(x, y float64) float64 { return x + y })
}

func addMarkup(f *frame, a, b Markup) Value {
	f.run.grown(len(a) + len(b))
	return a + b
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func escaped(s string) Markup { return Markup(htmlEscapes.Replace(s)) }

func multiply(f *frame, a, b Value) Value {
	if _, ok := toInt(a); ok {
		a, b = b, a
	}
	if n, ok := toInt(b); ok {
		n = min(max(n, 0), MaxOutput+1)
		switch x := a.(type) {
		case string:
			f.run.grown(len(x) * int(n))
			return strings.Repeat(x, int(n))
		case *List:
			if x.kind > tuple {
				break
			}
			f.run.grown(16 * len(x.Items) * int(n))
			l := &List{kind: x.kind}
			for range n {
				l.Items = append(l.Items, x.Items...)
			}
			return l
		}
	}
	return arithmetic("*", a, b, multiplyInt, func(x, y float64) float64 { return x * y })
}

func modulo(f *frame, a, b Value) Value {
	if s, ok := a.(string); ok {
		out := percentFormat(s, b)
		f.run.grown(len(out))
		return out
	}
	return arithmetic("%", a, b, func(x, y int64) (int64, bool) {
		if y == -1 {
			return 0, true
		}
		m := x % y
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		return m, true
	}, func(x, y float64) float64 {
		m := math.Mod(x, y)
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		return m
	})
}

// percentFormat is s % v, for %s and %d.
func percentFormat(s string, v Value) string {
	args := []Value{v}
	if l, ok := v.(*List); ok && l.kind == tuple {
		args = l.Items
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			break
		}
		if after == "" {
			fail("incomplete format")
		}
		verb := after[0]
		s = after[1:]
		if verb == '%' {
			b.WriteByte('%')
			continue
		}
		if len(args) == 0 {
			fail("not enough arguments for format string")
		}
		n, isInt := toInt(args[0])
		switch {
		case verb == 's':
			b.WriteString(str(args[0]))
		case verb == 'd' && isInt:
			b.WriteString(str(n))
		case verb == 'c' && isInt && n >= 0 && utf8.ValidRune(rune(n)) && int64(rune(n)) == n:
			b.WriteRune(rune(n))
		default:
			fail("format %%%c of a %s is not supported", verb, typeName(args[0]))
		}
		args = args[1:]
	}
	if len(args) > 0 {
		fail("not all arguments converted during string formatting")
	}
	return b.String()
}

func power(_ *frame, a, b Value) Value {
	x, okX := toInt(a)
	y, okY := toInt(b)
	if okX && okY && y >= 0 {
		n, ok := int64(1), true
		for i := int64(0); i < y && ok && i < 64; i++ {
			n, ok = multiplyInt(n, x)
		}
		if !ok || y >= 64 && (x < -1 || x > 1) {
			fail("%d ** %d is beyond 64 bits", x, y)
		}
		if y >= 64 && x == -1 && y%2 == 1 {
			n = -1
		}
		return n
	}
	fx, fy := operands("**", a, b)
	return math.Pow(fx, fy)
}

// signed is -v or +v.
func signed(op string, v Value) Value {
	zero := Value(int64(0))
	if op == "-" {
		if x, ok := v.(float64); ok {
			return -x
		}
		return operators["-"](nil, zero, v)
	}
	return arithmetic("+", zero, v, func(_, y int64) (int64, bool) { return y, true }, func(_, y float64) float64 { return y })
}

// comparisons are what ==, < and the like ask.
var comparisons = map[string]func(a, b Value) bool{
	"==":     equal,
	"!=":     func(a, b Value) bool { return !equal(a, b) },
	"<":      func(a, b Value) bool { return compare(a, b) < 0 },
	"<=":     func(a, b Value) bool { return compare(a, b) <= 0 },
	">":      func(a, b Value) bool { return compare(a, b) > 0 },
	">=":     func(a, b Value) bool { return compare(a, b) >= 0 },
	"in":     func(a, b Value) bool { return contains(b, a) },
	"not in": func(a, b Value) bool { return !contains(b, a) },
}

// equal is a == b.
func equal(a, b Value) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case Markup, *namespace, *loop, *callable:
		return a == b
	case Undefined:
		_, ok := b.(Undefined)
		return ok
	case BigInt:
		return b == a
	case *List:
		y, ok := b.(*List)
		if !ok || x.kind != y.kind || len(x.Items) != len(y.Items) {
			return false
		}
		for i := range x.Items {
			if !equal(x.Items[i], y.Items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		y, ok := b.(*Dict)
		return ok && equalDicts(x, y)
	}
	x, okX := toFloat(a)
	y, okY := toFloat(b)
	if okX && okY {
		if n, ok := toInt(a); ok {
			if m, ok := toInt(b); ok {
				return n == m
			}
		}
		return x == y
	}
	return !okX && !okY && a == b
}

func equalDicts(x, y *Dict) bool {
	if x.Len() != y.Len() {
		return false
	}
	for i := range x.keys {
		if v, ok := y.get(x.key(i)); !ok || !equal(x.values[i], v) {
			return false
		}
	}
	return true
}

// compare orders numbers, strings and lists; all else has no order.
func compare(a, b Value) int {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return strings.Compare(x, y)
		}
	}
	if x, ok := a.(*List); ok {
		if y, ok := b.(*List); ok && x.kind == y.kind && x.kind <= tuple {
			for i := range min(len(x.Items), len(y.Items)) {
				if !equal(x.Items[i], y.Items[i]) {
					return compare(x.Items[i], y.Items[i])
				}
			}
			return cmp.Compare(len(x.Items), len(y.Items))
		}
	}
	if n, ok := toInt(a); ok {
		if m, ok := toInt(b); ok {
			return cmp.Compare(n, m)
		}
	}
	x, y := operands("comparison", a, b)
	if math.IsNaN(x) || math.IsNaN(y) {
		fail("comparison with nan is not supported")
	}
	return cmp.Compare(x, y)
}

// contains is v in of.
func contains(of, v Value) bool {
	switch of := of.(type) {
	case Undefined:
		return false
	case string:
		s, ok := v.(string)
		if !ok {
			fail("'in <string>' requires string as left operand, not %s", typeName(v))
		}
		return strings.Contains(of, s)
	case *Dict:
		switch v.(type) {
		case *List, *Dict:
			fail("unhashable type: %s", typeName(v))
		}
		_, ok := of.get(v)
		return ok
	case *List:
		if of.kind == generator {
			fail("'in' with a generator is not supported")
		}
		for _, item := range of.Items {
			if equal(item, v) {
				return true
			}
		}
		return false
	}
	fail("a %s is not iterable", typeName(of))
	return false
}
