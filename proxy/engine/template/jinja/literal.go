package jinja

import (
	"strconv"
	"strings"
)

// quoted reads a string.
func (l *lexer) quoted(s string) token {
	n := 1
	for n < len(s) && s[n] != s[0] {
		if s[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(s) {
		l.fail("string without an end")
	}
	l.emit(literal, l.unescape(s[1:n]))
	t := l.tokens[len(l.tokens)-1]
	l.advance(l.pos + n + 1)
	t.text = "" // not to be taken for a bracket
	return t
}

var escapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f",
	'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// unescape resolves the escapes of a string as Python does.
func (l *lexer) unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if plain, ok := escapes[s[i]]; ok {
			b.WriteString(plain)
			continue
		}
		n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		switch {
		case n > 0:
			if i+n >= len(s) {
				l.fail("escape \\%c is cut short", s[i])
			}
			v, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil {
				l.fail("escape \\%s: not hexadecimal", s[i:i+1+n])
			}
			b.WriteRune(rune(v))
			i += n
		case s[i] >= '0' && s[i] <= '7':
			last := i + 1
			for last < len(s) && last < i+3 && s[last] >= '0' && s[last] <= '7' {
				last++
			}
			v, _ := strconv.ParseUint(s[i:last], 8, 32)
			b.WriteRune(rune(v))
			i = last - 1
		case s[i] == 'N':
			l.fail("escapes by name are not supported")
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
