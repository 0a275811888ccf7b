package cbr

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080

	// slack is how far past its end the output may be written while a string is
	// copied, which is done in steps of 32 bytes.
	slack = 64
)

// specials marks, by their high bits, the bytes of a word that end a run of plain
// text: quotes, backslashes and control characters. Only the lowest mark is
// certain; a borrow may set marks above it.
func specials(word uint64) uint64 {
	return ((word - ' '*ones) | ((word ^ '"'*ones) - ones) | ((word ^ '\\'*ones) - ones)) &^ word & highs
}

// text reads the string at the opening quote and appends what it stands for,
// unframed. Plain text is examined and copied in the same step, word by word:
// most strings end within the first, and escapes are seldom far apart, so the
// long steps are taken only after a few words without a special byte.
func (e *Encoder) text() bool {
	e.reserve()
	src, at := e.body, e.pos+1
	dst, n := e.out[:cap(e.out)], len(e.out)
	start, high, words := at, uint64(0), 0
	for {
		if len(src)-at < 8 {
			at, n, high = copyLast(src, at, dst, n, high)
		} else {
			word := binary.LittleEndian.Uint64(src[at:])
			binary.LittleEndian.PutUint64(dst[n:], word)
			high |= word
			marks := specials(word)
			if marks == 0 {
				at, n = at+8, n+8
				if words++; words == longRun {
					at, n, high = copyLong(src, at, dst, n, high)
					words = 0
				}
				continue
			}
			plain := bits.TrailingZeros64(marks) / 8
			at, n, words = at+plain, n+plain, 0
		}
		if at < len(src) && src[at] == '"' {
			e.out, e.pos = e.out[:n], at+1
			return high&highs == 0 || e.checkUTF8(start, at)
		}
		var ok bool
		if at, n, ok = e.special(at, n); !ok {
			return false
		}
	}
}

// special reads the escape at the offset and writes what it stands for at n, both
// of which it returns moved on. Anything else but a quote that ends plain text is
// a fault.
func (e *Encoder) special(at, n int) (int, int, bool) {
	src := e.body
	switch {
	case at >= len(src):
		return at, n, e.invalid(at, "text or the quote that ends the string")
	case src[at] != '\\':
		return at, n, e.invalid(at, "text without unescaped control characters")
	}
	dst := e.out[:cap(e.out)]
	for at+1 < len(src) && src[at] == '\\' { // escapes often come together
		plain := unescaped[src[at+1]]
		if plain == 0 {
			return e.unicodeEscape(at, n)
		}
		dst[n] = plain
		at, n = at+2, n+1
	}
	if at+1 == len(src) && src[at] == '\\' {
		return e.unicodeEscape(at, n)
	}
	return at, n, true
}

// reserve makes room for a string that reaches to the end of the body. Escapes
// only shrink, so no string needs more than it takes in the body.
func (e *Encoder) reserve() {
	need := len(e.body) - e.pos + slack
	if cap(e.out)-len(e.out) < need {
		e.out = grow(e.out, need)
	}
}

// grow moves p to where need more bytes fit, at least doubling it, so that many
// small steps cost no more than one large one.
func grow(p []byte, need int) []byte {
	return append(make([]byte, 0, max(2*cap(p), len(p)+need)), p...)
}

// copyLast copies the text within the last few bytes of the body, up to the next
// special byte. It returns both offsets moved on, and high with the bytes seen
// ored into it, to tell ASCII from text that needs a check.
func copyLast(src []byte, at int, dst []byte, n int, high uint64) (int, int, uint64) {
	for at < len(src) && src[at] >= ' ' && src[at] != '"' && src[at] != '\\' {
		high |= uint64(src[at])
		dst[n] = src[at]
		at, n = at+1, n+1
	}
	return at, n, high
}

// longRun is how many words without a special byte make a run a long one.
const longRun = 4

// copyLong copies text in steps of 32 bytes and stops before the step that has a
// special byte. dst must have room for the rest of src.
func copyLong(src []byte, at int, dst []byte, n int, high uint64) (int, int, uint64) {
	for at+32 <= len(src) {
		from, to := src[at:at+32], dst[n:n+32]
		a, b := binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(from[8:])
		c, d := binary.LittleEndian.Uint64(from[16:]), binary.LittleEndian.Uint64(from[24:])
		if specials(a)|specials(b)|specials(c)|specials(d) != 0 {
			break
		}
		binary.LittleEndian.PutUint64(to, a)
		binary.LittleEndian.PutUint64(to[8:], b)
		binary.LittleEndian.PutUint64(to[16:], c)
		binary.LittleEndian.PutUint64(to[24:], d)
		high |= a | b | c | d
		at, n = at+32, n+32
	}
	return at, n, high
}

// checkUTF8 checks the inside of a string, escapes and all.
func (e *Encoder) checkUTF8(from, to int) bool {
	if utf8.Valid(e.body[from:to]) {
		return true
	}
	for from < to {
		r, size := utf8.DecodeRune(e.body[from:to])
		if r == utf8.RuneError && size == 1 {
			break
		}
		from += size
	}
	return e.fail(CodeInvalidUTF8, from, "the request body is not UTF-8: byte %d, %s, is no part of a character; encode the body in UTF-8", from, e.found(from))
}

// unescaped holds, by the character after a backslash, what it stands for; zero
// is none.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unicodeEscape reads a \u escape, and the one behind it where both together are
// one character, and refuses all other escapes that text has not read. A lone surrogate is kept, as Python's parser keeps it, in the
// three bytes that UTF-8 would have for it: they occur in no valid text.
func (e *Encoder) unicodeEscape(at, n int) (int, int, bool) {
	if at+1 >= len(e.body) || e.body[at+1] != 'u' {
		return at, n, e.invalid(at+1, `one of "\/bfnrtu after a backslash`)
	}
	r, ok := hex4(e.body, at+2)
	if !ok {
		return at, n, e.invalid(at+2, "the first of four hex digits after \\u")
	}
	at += 6
	if low, ok := lowSurrogate(e.body, at); ok && r>>10 == 0xD800>>10 {
		r, at = 0x10000+(r-0xD800)<<10+(low-0xDC00), at+6
	}
	return at, len(appendWTF8(e.out[:n], r)), true
}

// lowSurrogate reads an escaped low surrogate, where one stands at the offset.
func lowSurrogate(body []byte, at int) (rune, bool) {
	if at+6 > len(body) || body[at] != '\\' || body[at+1] != 'u' {
		return 0, false
	}
	r, ok := hex4(body, at+2)
	return r, ok && r>>10 == 0xDC00>>10
}

// appendWTF8 appends a code point in UTF-8, and a surrogate in the same way.
func appendWTF8(p []byte, r rune) []byte {
	if r>>11 == 0xD800>>11 {
		return append(p, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(p, r)
}

// hex4 reads the four hex digits at an offset.
func hex4(p []byte, at int) (rune, bool) {
	if at+4 > len(p) {
		return 0, false
	}
	var r rune
	for _, c := range p[at : at+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
