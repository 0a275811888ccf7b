package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a token is.
type kind uint8

const (
	text       kind = iota // outside of tags
	blockBegin             // {%
	blockEnd
	printBegin // {{
	printEnd
	name
	literal  // a string
	integer  // digits
	float    // a number with a point or an exponent
	operator // everything else
	end      // of the template
)

type token struct {
	kind kind
	text string
	line int
}

// lexer cuts a template into tokens by the rules of Jinja with trim_blocks and
// lstrip_blocks.
type lexer struct {
	src    string
	pos    int
	line   int
	tokens []token
	// fresh is whether what was read last ended a line: spaces before a block that
	// comes next are its indentation.
	fresh bool
}

// maxTokens bounds what a template may consist of.
const maxTokens = 1 << 20

func lex(src string) []token {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, fresh: true}
	for l.pos < len(l.src) {
		l.next()
	}
	l.emit(end, "")
	return l.tokens
}

func (l *lexer) fail(format string, args ...any) { failAt(l.line, format, args...) }

func (l *lexer) emit(k kind, s string) {
	if len(l.tokens) == maxTokens {
		l.fail("more than %d tokens", maxTokens)
	}
	l.tokens = append(l.tokens, token{k, s, l.line})
}

// advance goes on to pos.
func (l *lexer) advance(pos int) {
	l.line += strings.Count(l.src[l.pos:pos], "\n")
	l.fresh = pos > l.pos && l.src[pos-1] == '\n'
	l.pos = pos
}

// next reads text and the tag after it.
func (l *lexer) next() {
	rest := l.src[l.pos:]
	at := 0
	for {
		i := strings.IndexByte(rest[at:], '{')
		if i < 0 {
			l.emit(text, rest)
			l.advance(len(l.src))
			return
		}
		if at += i; at+1 < len(rest) && strings.IndexByte("{%#", rest[at+1]) >= 0 {
			break
		}
		at++
	}
	opener := rest[at+1]
	sign := byte(0)
	if at+2 < len(rest) && (rest[at+2] == '-' || rest[at+2] == '+') {
		sign = rest[at+2]
	}
	if before := l.strip(rest[:at], sign, opener != '{'); before != "" {
		l.emit(text, before)
	}
	begin := l.pos + at + 2
	if sign != 0 {
		begin++
	}
	l.advance(begin)
	switch opener {
	case '#':
		l.comment()
	case '%':
		if !l.raw() {
			l.emit(blockBegin, "")
			l.tag("%}", blockEnd)
		}
	default:
		l.emit(printBegin, "")
		l.tag("}}", printEnd)
	}
}

// strip takes off the end of the text before a tag what doesn't count.
func (l *lexer) strip(s string, sign byte, block bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(s, isSpace)
	}
	if sign == '+' || !block {
		return s
	}
	start := strings.LastIndexByte(s, '\n') + 1
	if (start > 0 || l.fresh) && strings.TrimLeftFunc(s[start:], isSpace) == "" {
		return s[:start]
	}
	return s
}

// closed advances over the closer of a tag and the space that goes with it; it is
// at, right before the closer or its sign.
func (l *lexer) closed(at int, closer string) {
	switch {
	case l.src[at] == '-':
		rest := l.src[at+1+len(closer):]
		l.advance(len(l.src) - len(strings.TrimLeftFunc(rest, isSpace)))
	case l.src[at] == '+':
		l.advance(at + 1 + len(closer))
	default:
		at += len(closer)
		if closer != "}}" && at < len(l.src) && l.src[at] == '\n' {
			at++
		}
		l.advance(at)
	}
}

func (l *lexer) comment() {
	i := strings.Index(l.src[l.pos:], "#}")
	if i < 0 {
		l.fail("comment without an end")
	}
	at := l.pos + i
	if i > 0 && (l.src[at-1] == '-' || l.src[at-1] == '+') {
		at--
	}
	l.closed(at, "#}")
}

// raw reads {% raw %} up to {% endraw %}, if that is what comes.
func (l *lexer) raw() bool {
	at, ok := word(l.src, l.pos, "raw")
	if !ok {
		return false
	}
	switch rest := l.src[at:]; {
	case strings.HasPrefix(rest, "-%}"):
		l.closed(at, "%}")
	case strings.HasPrefix(rest, "%}"):
		l.advance(at + 2)
	default:
		return false
	}
	for from := l.pos; ; {
		i := strings.Index(l.src[from:], "{%")
		if i < 0 {
			l.fail("raw without endraw")
		}
		start := from + i
		from = start + 2
		sign := byte(0)
		if from < len(l.src) && (l.src[from] == '-' || l.src[from] == '+') {
			sign = l.src[from]
			from++
		}
		at, ok := word(l.src, from, "endraw")
		if !ok || !(strings.HasPrefix(l.src[at:], "%}") || strings.HasPrefix(l.src[at:], "-%}") || strings.HasPrefix(l.src[at:], "+%}")) {
			continue
		}
		l.emit(text, l.strip(l.src[l.pos:start], sign, true))
		l.closed(at, "%}")
		return true
	}
}

// word is where the space after a word ends, if the word comes next but for space.
func word(s string, at int, w string) (int, bool) {
	rest := strings.TrimLeftFunc(s[at:], isSpace)
	if !strings.HasPrefix(rest, w) {
		return 0, false
	}
	return len(s) - len(strings.TrimLeftFunc(rest[len(w):], isSpace)), true
}

// tag reads the tokens of a tag up to its closer. Braces of the tag come first.
func (l *lexer) tag(closer string, closing kind) {
	depth := 0
	for {
		rest := l.src[l.pos:]
		trimmed := strings.TrimLeftFunc(rest, isSpace)
		l.advance(len(l.src) - len(trimmed))
		if trimmed == "" {
			l.fail("tag without %q", closer)
		}
		signed := len(trimmed) > 2 && (trimmed[0] == '-' || trimmed[0] == '+' && closing == blockEnd) && trimmed[1:3] == closer
		if depth == 0 && (signed || strings.HasPrefix(trimmed, closer)) {
			l.emit(closing, "")
			l.closed(l.pos, closer)
			return
		}
		t := l.token(trimmed)
		switch t.text {
		case "(", "[", "{":
			if t.kind == operator {
				depth++
			}
		case ")", "]", "}":
			if t.kind == operator {
				depth--
			}
		}
	}
}

// token reads one token of a tag; s is not empty and begins with it.
func (l *lexer) token(s string) token {
	k, n := operator, 1
	c, size := utf8.DecodeRuneInString(s)
	switch {
	case c == '\'' || c == '"':
		return l.quoted(s)
	case c >= '0' && c <= '9':
		k, n = numberAt(s)
	case c == '_' || unicode.IsLetter(c):
		k = name
		n = strings.IndexFunc(s, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(s)
		}
	case len(s) > 1 && doubled(s[:2]):
		n = 2
	case !strings.ContainsRune("+-*/%~|.,:()[]{}<>=", c):
		l.fail("unexpected character %q", s[:size])
	}
	l.emit(k, s[:n])
	l.advance(l.pos + n)
	return l.tokens[len(l.tokens)-1]
}

func doubled(s string) bool {
	switch s {
	case "**", "//", "==", "!=", "<=", ">=":
		return true
	}
	return false
}

// numberAt is the kind and length of the number that s begins with.
func numberAt(s string) (kind, int) {
	digits := func(i int) int {
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '_' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9') {
			i++
		}
		return i
	}
	k, n := integer, digits(0)
	if n+1 < len(s) && s[n] == '.' && s[n+1] >= '0' && s[n+1] <= '9' {
		k, n = float, digits(n+1)
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if m := digits(e); m > e {
			k, n = float, m
		}
	}
	return k, n
}
