package kvevent

import "encoding/binary"

// skip is what follows the first object of b, false if it has no end. Nesting is
// counted rather than descended into, so its depth costs nothing.
func skip(b []byte) (rest []byte, ok bool) {
	for pending := uint64(1); pending > 0; pending-- {
		size, children := extent(b)
		if size == 0 || size > uint64(len(b)) {
			return nil, false
		}
		b = b[size:]
		pending += children // of 2^33 per 5 bytes at most: no payload is long enough to overflow
	}
	return b, true
}

// extent is how many bytes the first object of b has without its children, and how
// many children. 0 bytes: no object.
func extent(b []byte) (size, children uint64) {
	if len(b) == 0 {
		return 0, 0
	}
	switch c := b[0]; {
	case c < 0x80 || c >= 0xe0: // small numbers
		return 1, 0
	case c < 0x90: // map
		return 1, 2 * uint64(c&0x0f)
	case c < 0xa0: // array
		return 1, uint64(c & 0x0f)
	case c < 0xc0: // string
		return 1 + uint64(c&0x1f), 0
	default:
		return longExtent(c, b[1:])
	}
}

// longExtent is extent for objects whose first byte says the type only; b is what
// follows it.
func longExtent(c byte, b []byte) (size, children uint64) {
	if fixed := fixedSize[c-0xc0]; fixed > 0 {
		return uint64(fixed), 0
	}
	width, isCounted := countWidth(c)
	if !isCounted || len(b) < width {
		return 0, 0
	}
	var n uint64
	switch width {
	case 1:
		n = uint64(b[0])
	case 2:
		n = uint64(binary.BigEndian.Uint16(b))
	case 4:
		n = uint64(binary.BigEndian.Uint32(b))
	}
	head := 1 + uint64(width)
	switch {
	case c >= 0xde: // maps
		return head, 2 * n
	case c >= 0xdc: // arrays
		return head, n
	case c >= 0xc7 && c <= 0xc9: // extensions, with a byte for their type
		return head + 1 + n, 0
	default:
		return head + n, 0
	}
}

// fixedSize is the size of objects of the types 0xc0 to 0xdf that always have the
// same one.
var fixedSize = [0x20]uint8{
	0x00: 1, 0x02: 1, 0x03: 1, // nil and booleans
	0x0a: 5, 0x0b: 9, // floats
	0x0c: 2, 0x0d: 3, 0x0e: 5, 0x0f: 9, // unsigned
	0x10: 2, 0x11: 3, 0x12: 5, 0x13: 9, // signed
	0x14: 3, 0x15: 4, 0x16: 6, 0x17: 10, 0x18: 18, // extensions
}

// countWidth is how many bytes the count of an object of the given type has.
func countWidth(c byte) (width int, isCounted bool) {
	switch c {
	case 0xc4, 0xc7, 0xd9:
		return 1, true
	case 0xc5, 0xc8, 0xda, 0xdc, 0xde:
		return 2, true
	case 0xc6, 0xc9, 0xdb, 0xdd, 0xdf:
		return 4, true
	}
	return 0, false
}
