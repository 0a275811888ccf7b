package kvevent

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/tinylib/msgp/msgp"
)

// First bytes of MessagePack objects that are told apart here.
const (
	nilByte    = 0xc0
	uint16Byte = 0xcd
	uint32Byte = 0xce
	uint64Byte = 0xcf
	int8Byte   = 0xd0
	int64Byte  = 0xd3
	negFixint  = 0xe0
)

func isNil(b []byte) bool { return len(b) > 0 && b[0] == nilByte }

// arrayHead reads the head of an array; nil is an empty one. A count that the rest
// of the payload can't hold is refused, so a count may be allocated for.
func arrayHead(b []byte) (n int, rest []byte, ok bool) {
	if isNil(b) {
		return 0, b[1:], true
	}
	size, rest, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil || uint64(size) > uint64(len(rest)) {
		return 0, b, false
	}
	return int(size), rest, true
}

// mapHead reads the head of a map, whose count is of pairs.
func mapHead(b []byte) (n int, rest []byte, ok bool) {
	size, rest, err := msgp.ReadMapHeaderBytes(b)
	if err != nil || 2*uint64(size) > uint64(len(rest)) {
		return 0, b, false
	}
	return int(size), rest, true
}

func isArray(b []byte) bool { return msgp.NextType(b) == msgp.ArrayType }
func isMap(b []byte) bool   { return msgp.NextType(b) == msgp.MapType }

// text reads a string in place; nil is an empty one.
func text(b []byte) (s, rest []byte, ok bool) {
	if isNil(b) {
		return nil, b[1:], true
	}
	s, rest, err := msgp.ReadStringZC(b)
	return s, rest, err == nil
}

// number reads an integer of either sign as its 64 bits.
func number(b []byte) (bits uint64, negative bool, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, false, b, false
	}
	if c := b[0]; c >= negFixint || c >= int8Byte && c <= int64Byte {
		i, rest, err := msgp.ReadInt64Bytes(b)
		return uint64(i), i < 0, rest, err == nil
	}
	u, rest, err := msgp.ReadUint64Bytes(b)
	return u, false, rest, err == nil
}

// count reads an integer from 0 to 2^31-1; nil is missing.
func count(b []byte, missing int) (n int, rest []byte, ok bool) {
	if isNil(b) {
		return missing, b[1:], true
	}
	bits, negative, rest, ok := number(b)
	return int(bits), rest, ok && !negative && bits <= math.MaxInt32
}

// seconds reads a time, which engines send as a float64.
func seconds(b []byte) (f float64, rest []byte, ok bool) {
	switch msgp.NextType(b) {
	case msgp.Float64Type, msgp.Float32Type:
		f, rest, err := msgp.ReadFloat64Bytes(b)
		return f, rest, err == nil
	}
	bits, negative, rest, ok := number(b)
	if negative {
		return float64(int64(bits)), rest, ok
	}
	return float64(bits), rest, ok
}

// hash reads the name of a block: a number of either sign, or a digest.
func hash(b []byte) (h uint64, rest []byte, ok bool) {
	if len(b) >= 9 && b[0] == uint64Byte {
		return binary.BigEndian.Uint64(b[1:]), b[9:], true
	}
	if msgp.NextType(b) != msgp.BinType {
		h, _, rest, ok = number(b)
		return h, rest, ok
	}
	digest, rest, err := msgp.ReadBytesZC(b)
	if err != nil || len(digest) == 0 {
		return 0, b, false
	}
	return endOf(digest), rest, true
}

// endOf is the last 8 bytes of a digest as a big endian number, or all of a
// shorter one.
func endOf(digest []byte) uint64 {
	var h uint64
	for _, c := range digest[max(0, len(digest)-8):] {
		h = h<<8 | uint64(c)
	}
	return h
}

// appendHashes reads an array of blocks' names.
func appendHashes(dst []uint64, b []byte) (_ []uint64, rest []byte, ok bool) {
	n, b, ok := arrayHead(b)
	dst = slices.Grow(dst, n)
	for ; n > 0 && ok; n-- {
		var h uint64
		if h, b, ok = hash(b); ok {
			dst = append(dst, h)
		}
	}
	return dst, b, ok
}

// appendTokens reads an array of token ids, or of arrays of which the first
// element is the id. Nearly all of a payload is token ids, of one to five bytes:
// those are read in line.
func appendTokens(dst []uint32, b []byte) (_ []uint32, rest []byte, ok bool) {
	n, b, ok := arrayHead(b)
	dst = slices.Grow(dst, n)
	at := 0
	for ; n > 0 && ok; n-- {
		left := b[at:]
		switch {
		case len(left) >= 1 && left[0] < 0x80:
			dst, at = append(dst, uint32(left[0])), at+1
		case len(left) >= 3 && left[0] == uint16Byte:
			dst, at = append(dst, uint32(binary.BigEndian.Uint16(left[1:]))), at+3
		case len(left) >= 5 && left[0] == uint32Byte:
			dst, at = append(dst, binary.BigEndian.Uint32(left[1:])), at+5
		default:
			var t uint32
			if t, left, ok = token(left); ok {
				dst, at = append(dst, t), len(b)-len(left)
			}
		}
	}
	return dst, b[at:], ok
}

// token reads a token id, or the first of an array of them.
func token(b []byte) (t uint32, rest []byte, ok bool) {
	if isArray(b) {
		n, first, ok := arrayHead(b)
		if !ok || n == 0 || isArray(first) {
			return 0, b, false
		}
		if t, _, ok = token(first); !ok {
			return 0, b, false
		}
		rest, ok = skip(b)
		return t, rest, ok
	}
	bits, negative, rest, ok := number(b)
	return uint32(bits), rest, ok && !negative && bits <= math.MaxUint32
}

// appendCounts reads an array of small numbers.
func appendCounts(dst []int, b []byte) (_ []int, rest []byte, ok bool) {
	n, b, ok := arrayHead(b)
	dst = slices.Grow(dst, n)
	for ; n > 0 && ok; n-- {
		var c int
		if c, b, ok = count(b, 0); ok {
			dst = append(dst, c)
		}
	}
	return dst, b, ok
}
