package cbr

import (
	"bytes"
	"strconv"
)

// decimal is a JSON number in its parts, as slices of the body.
type decimal struct {
	whole, frac, exp      []byte // digits only
	negative, expNegative bool
}

// number reads a number and appends it framed, spelled as the client did.
func (e *Encoder) number() bool {
	if e.plainInteger() {
		return true
	}
	start := e.pos
	if !e.decimal(new(decimal)) {
		return false
	}
	e.out = append(e.out, tagNumber)
	e.out = append(e.out, e.body[start:e.pos]...)
	e.out = append(e.out, tagEnd)
	return true
}

// canonicalNumber reads a number and appends it framed, in the one spelling that
// all numbers of its value have: the significant digits, then, unless it is zero,
// the power of ten they count. Nothing is computed but that power, so no number
// costs more than its digits.
func (e *Encoder) canonicalNumber() bool {
	if e.plainInteger() {
		return true
	}
	var d decimal
	if !e.decimal(&d) {
		return false
	}
	e.out = append(e.out, tagNumber)
	e.out = d.append(e.out)
	e.out = append(e.out, tagEnd)
	return true
}

// plainInteger reads and appends the number at hand if it is an integer above
// zero that has its canonical spelling already, as nearly all numbers are. It
// reports false, and reads nothing, for any other.
func (e *Encoder) plainInteger() bool {
	body, at, out := e.body, e.pos, append(e.out, tagNumber)
	last := byte('0')
	for at < len(body) && body[at]-'0' <= 9 {
		last = body[at]
		out = append(out, last)
		at++
	}
	if last == '0' || body[e.pos] == '0' {
		return false
	}
	if at < len(body) && (body[at] == '.' || body[at]|0x20 == 'e') {
		return false
	}
	e.out, e.pos = append(out, tagEnd), at
	return true
}

// decimal reads a number by JSON's grammar.
func (e *Encoder) decimal(d *decimal) bool {
	d.negative = e.skip('-')
	zero := e.pos < len(e.body) && e.body[e.pos] == '0'
	if d.whole = e.digits(); len(d.whole) == 0 {
		return e.unexpected("a digit")
	}
	if zero && len(d.whole) > 1 {
		return e.invalid(e.pos-len(d.whole)+1, "the end of a number that starts with 0")
	}
	if e.skip('.') {
		if d.frac = e.digits(); len(d.frac) == 0 {
			return e.unexpected("a digit")
		}
	}
	if e.skip('e') || e.skip('E') {
		d.expNegative = e.skip('-')
		if !d.expNegative {
			e.skip('+')
		}
		if d.exp = e.digits(); len(d.exp) == 0 {
			return e.unexpected("a digit")
		}
	}
	return true
}

// skip moves past one byte if it is c, and reports whether it did.
func (e *Encoder) skip(c byte) bool {
	if e.pos < len(e.body) && e.body[e.pos] == c {
		e.pos++
		return true
	}
	return false
}

// digits moves past the decimal digits ahead and returns them.
func (e *Encoder) digits() []byte {
	start := e.pos
	for e.pos < len(e.body) && e.body[e.pos]-'0' <= 9 {
		e.pos++
	}
	return e.body[start:e.pos]
}

// append appends the canonical spelling.
func (d *decimal) append(p []byte) []byte {
	whole, frac := bytes.TrimLeft(d.whole, "0"), d.frac
	if len(whole) == 0 {
		frac = bytes.TrimLeft(frac, "0")
	}
	power := -len(d.frac)
	if frac = bytes.TrimRight(frac, "0"); len(frac) == 0 {
		whole = bytes.TrimRight(whole, "0")
	}
	if len(whole)+len(frac) == 0 {
		return append(p, '0')
	}
	power += d.trailingZeros()
	if d.negative {
		p = append(p, '-')
	}
	p = append(append(p, whole...), frac...)
	return d.appendPower(p, power)
}

// trailingZeros counts the zeros after the last significant digit.
func (d *decimal) trailingZeros() int {
	zeros := len(d.frac) - len(bytes.TrimRight(d.frac, "0"))
	if zeros == len(d.frac) {
		zeros += len(d.whole) - len(bytes.TrimRight(d.whole, "0"))
	}
	return zeros
}

// maxExponentDigits is how many digits an exponent may have to be added to.
const maxExponentDigits = 18

// appendPower appends the power of ten: the number's own exponent and what moving
// the decimal point adds to it. An exponent that fits no machine word, which no
// engine can read as anything but infinity or zero, is kept beside the addition.
func (d *decimal) appendPower(p []byte, power int) []byte {
	exp := bytes.TrimLeft(d.exp, "0")
	if len(exp) > maxExponentDigits {
		p = append(p, 'E')
		if d.expNegative {
			p = append(p, '-')
		}
		p = append(append(p, exp...), '+')
		return strconv.AppendInt(p, int64(power), 10)
	}
	total := int64(0)
	for _, c := range exp {
		total = 10*total + int64(c-'0')
	}
	if d.expNegative {
		total = -total
	}
	if total += int64(power); total == 0 {
		return p
	}
	return strconv.AppendInt(append(p, 'e'), total, 10)
}
