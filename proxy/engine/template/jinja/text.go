package jinja

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

func lowered(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func uppered(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

// titled is str.title: a letter begins a word if none is before it.
func titled(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		was := inWord
		inWord = unicode.IsLetter(r)
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

// titledBySpace is the filter title: a word begins behind space and some brackets.
func titledBySpace(s string) string {
	begins := true
	return strings.Map(func(r rune) rune {
		was := begins
		begins = isSpace(r) || strings.ContainsRune("-({[<", r)
		if was {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func capitalized(s string) string {
	for i, r := range s {
		n := i + len(string(r))
		return string(unicode.ToTitle(r)) + lowered(s[n:])
	}
	return ""
}

// split is split or, from the right, rsplit.
func split(fromRight bool) methodOf {
	return func(f *frame, v Value, a arguments) Value {
		a.atMost(2, "sep", "maxsplit")
		s, most := v.(string), int(max(min(needInt(a.or(1, "maxsplit", int64(-1))), MaxOutput), -1))
		sep := a.or(0, "sep", nil)
		var parts []string
		switch {
		case sep == nil && most < 0:
			parts = strings.FieldsFunc(s, isSpace)
		case sep == nil:
			parts = fields(s, most, fromRight)
		case needString(sep) == "":
			fail("empty separator")
		case most < 0:
			parts = strings.Split(s, sep.(string))
		case fromRight:
			parts = splitRight(s, sep.(string), most)
		default:
			parts = strings.SplitN(s, sep.(string), most+1)
		}
		f.run.grown(16*len(parts) + len(s))
		return stringList(parts)
	}
}

func stringList(parts []string) *List {
	l := &List{Items: make([]Value, len(parts))}
	for i, p := range parts {
		l.Items[i] = p
	}
	return l
}

// fields splits at space at most n times.
func fields(s string, n int, fromRight bool) (parts []string) {
	if fromRight {
		fail("rsplit at space with maxsplit is not supported")
	}
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; n-- {
		i := strings.IndexFunc(s, isSpace)
		if i < 0 || n == 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i])
		s = strings.TrimLeftFunc(s[i:], isSpace)
	}
	return parts
}

func splitRight(s, sep string, n int) []string {
	var parts []string
	for ; n > 0; n-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append([]string{s[i+len(sep):]}, parts...)
		s = s[:i]
	}
	return append([]string{s}, parts...)
}

func splitLines(f *frame, v Value, a arguments) Value {
	a.atMost(1, "keepends")
	keep := truth(a.or(0, "keepends", false))
	s := v.(string)
	var lines []string
	for s != "" {
		i := strings.IndexFunc(s, func(r rune) bool {
			return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
		})
		if i < 0 {
			lines = append(lines, s)
			break
		}
		n := i + 1
		switch {
		case strings.HasPrefix(s[i:], "\r\n"):
			n = i + 2
		case s[i] == 0xc2:
			n = i + 2
		case s[i] == 0xe2:
			n = i + 3
		}
		if keep {
			i = n
		}
		lines = append(lines, s[:i])
		s = s[n:]
	}
	f.run.grown(16 * len(lines))
	return stringList(lines)
}

func replaceMethod(f *frame, v Value, a arguments) Value {
	a.atMost(3)
	from, to := needString(a.must(0, "old")), needString(a.must(1, "new"))
	return replaced(f, v.(string), from, to, a.or(2, "", int64(-1)))
}

func replaced(f *frame, s, from, to string, count Value) string {
	n := -1
	if count != nil {
		n = int(max(min(needInt(count), MaxOutput), -1))
	}
	if grows := len(to) - len(from); grows > 0 {
		f.run.grown(len(s) + strings.Count(s, from)*grows)
	}
	f.run.grown(len(s))
	return strings.Replace(s, from, to, n)
}

func joinMethod(f *frame, v Value, a arguments) Value {
	a.atMost(1)
	var parts []string
	for _, x := range iterate(f, a.must(0, "iterable")) {
		parts = append(parts, needString(x))
	}
	return joined(f, parts, v.(string))
}

func joined(f *frame, parts []string, sep string) string {
	n := len(parts) * len(sep)
	for _, p := range parts {
		n += len(p)
	}
	f.run.grown(n)
	return strings.Join(parts, sep)
}

func countMethod(f *frame, v Value, a arguments) Value {
	a.atMost(1)
	f.run.grown(len(v.(string)))
	return int64(strings.Count(v.(string), needString(a.must(0, "sub"))))
}

// formatMethod is str.format of plain fields: {}, {0} and {name}.
func formatMethod(f *frame, v Value, a arguments) Value {
	var b strings.Builder
	s, next := v.(string), 0
	for i := 0; i < len(s); i++ {
		if s[i] != '{' && s[i] != '}' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == s[i] {
			b.WriteByte(s[i])
			i++
			continue
		}
		n := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || n < 0 {
			fail("format: single %q", s[i])
		}
		field := s[i+1 : i+n]
		i += n
		if field == "" {
			field = strconv.Itoa(next)
			next++
		}
		var x Value
		var ok bool
		if k, err := strconv.Atoi(field); err == nil && k >= 0 {
			x, ok = a.get(k, "")
		} else {
			x, ok = a.named(field)
		}
		if !ok {
			fail("format: field %q is not supported", field)
		}
		b.WriteString(str(x))
		f.run.grown(b.Len())
	}
	return b.String()
}
