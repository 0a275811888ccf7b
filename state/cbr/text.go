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
// unframed. Plain text is examined and copied in the same step.
func (e *Encoder) text() bool {
	e.reserve()
	src, at := e.body, e.pos+1
	dst, n := e.out[:cap(e.out)], len(e.out)
	start, high := at, uint64(0)
	for {
		at, n, high = copyPlain(src, at, dst, n, high)
		if at+1 < len(src) && src[at] == '\\' {
			if plain := unescaped[src[at+1]]; plain != 0 {
				dst[n] = plain
				at, n = at+2, n+1
				continue
			}
		}
		if at < len(src) && src[at] == '"' {
			e.out = e.out[:n]
			e.pos = at + 1
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
		if plain := unescaped[src[at+1]]; plain != 0 {
			dst[n] = plain
			at, n = at+2, n+1
			continue
		}
		r, size := unicodeEscape(src[at:])
		if size == 0 {
			return at, n, e.badEscape(at)
		}
		at, n = at+size, n+putWTF8(dst[n:], r)
	}
	if at+1 == len(src) && src[at] == '\\' {
		return at, n, e.badEscape(at)
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

// copyWords copies plain text word by word up to the next special byte or the end
// of src. It returns both offsets moved on, and high with the bytes seen ored into
// it, to tell ASCII from text that needs a check. dst must have room for the rest
// of src and slack more.
func copyWords(src []byte, at int, dst []byte, n int, high uint64) (int, int, uint64) {
	for len(src)-at >= 8 {
		word := binary.LittleEndian.Uint64(src[at:])
		binary.LittleEndian.PutUint64(dst[n:], word)
		high |= word
		if marks := specials(word); marks != 0 {
			plain := bits.TrailingZeros64(marks) / 8
			return at + plain, n + plain, high
		}
		at, n = at+8, n+8
	}
	return copyLast(src, at, dst, n, high)
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
// one character. It returns the length of what it has read, 0 if it is faulty.
func unicodeEscape(p []byte) (r rune, size int) {
	r = hex4(p)
	if r < 0 {
		return 0, 0
	}
	if r>>10 == 0xD800>>10 {
		if low := hex4(p[6:]); low>>10 == 0xDC00>>10 {
			return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), 12
		}
	}
	return r, 6
}

// badEscape notes what is wrong with the escape at the offset.
func (e *Encoder) badEscape(at int) bool {
	if at+1 >= len(e.body) || e.body[at+1] != 'u' {
		return e.invalid(at+1, `one of "\/bfnrtu after a backslash`)
	}
	return e.invalid(at+2, "the first of four hex digits after \\u")
}

// putWTF8 writes a code point in UTF-8 and returns its length. A surrogate without
// its other half is kept, as Python's parser keeps it, in the three bytes that
// UTF-8 would have for it: they occur in no valid text.
func putWTF8(p []byte, r rune) int {
	switch {
	case r < 0x80:
		p[0] = byte(r)
		return 1
	case r < 0x800:
		p[0], p[1] = 0xC0|byte(r>>6), 0x80|byte(r)&0x3F
		return 2
	case r < 0x10000:
		p[0], p[1], p[2] = 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F
		return 3
	}
	return utf8.EncodeRune(p, r)
}

// hex4 reads an escape of \u and four hex digits, and is -1 for anything else.
func hex4(p []byte) rune {
	if len(p) < 6 || p[0] != '\\' || p[1] != 'u' {
		return -1
	}
	a, b, c, d := hexDigits[p[2]], hexDigits[p[3]], hexDigits[p[4]], hexDigits[p[5]]
	return rune(a)<<12 | rune(b)<<8 | rune(c)<<4 | rune(d) // negative if one of them is
}

// hexDigits holds the value of each hex digit, and -1 for all other bytes.
var hexDigits = func() (table [256]int8) {
	for c := range table {
		table[c] = -1
	}
	for i, c := range []byte("0123456789abcdef") {
		table[c] = int8(i)
	}
	for i, c := range []byte("ABCDEF") {
		table[c] = int8(10 + i)
	}
	return table
}()
