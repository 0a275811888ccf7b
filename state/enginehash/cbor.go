package enginehash

import "encoding/binary"

// cbor writes RFC 8949's canonical form: lengths are definite, numbers as short
// as can be.
type cbor struct{}

// Major types, in the upper three bits of an item's first byte.
const (
	cborUint   = 0 << 5
	cborNegint = 1 << 5
	cborBytes  = 2 << 5
	cborText   = 3 << 5
	cborArray  = 4 << 5
	cborNull   = 0xf6
)

func (cbor) text(dst []byte, s string) []byte {
	return append(cborHead(dst, cborText, uint64(len(s))), s...)
}

func (c cbor) block(dst, parent []byte, tokens []uint32, extras []extra, untagged bool) []byte {
	dst = cborHead(dst, cborArray, 3)
	dst = append(cborHead(dst, cborBytes, uint64(len(parent))), parent...)
	dst = cborHead(dst, cborArray, uint64(len(tokens)))
	for _, t := range tokens {
		dst = cborHead(dst, cborUint, uint64(t))
	}
	if len(extras) == 0 {
		return append(dst, cborNull)
	}
	dst = cborHead(dst, cborArray, uint64(len(extras)))
	for i := range extras {
		dst = c.extra(dst, &extras[i], untagged)
	}
	return dst
}

func (c cbor) extra(dst []byte, e *extra, untagged bool) []byte {
	switch {
	case untagged && e.kind == extraMedia:
		return cborInt(c.text(cborHead(dst, cborArray, 2), e.a), e.offset)
	case untagged:
		return c.text(dst, e.a)
	case e.kind == extraLoRA:
		return c.text(c.text(c.text(cborHead(dst, cborArray, 3), tagLoRA), e.a), e.b)
	case e.kind == extraMedia:
		return cborInt(c.text(c.text(cborHead(dst, cborArray, 3), tagMedia), e.a), e.offset)
	default:
		return c.text(c.text(cborHead(dst, cborArray, 2), tagSalt), e.a)
	}
}

func cborInt(dst []byte, n int64) []byte {
	if n < 0 {
		return cborHead(dst, cborNegint, uint64(-1-n))
	}
	return cborHead(dst, cborUint, uint64(n))
}

// cborHead appends an item's head: its type and a number.
func cborHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n <= 0xff:
		return append(dst, major|24, byte(n))
	case n <= 0xffff:
		return append(dst, major|25, byte(n>>8), byte(n))
	case n <= 0xffffffff:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, major|27), n)
	}
}
