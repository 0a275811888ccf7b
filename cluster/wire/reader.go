package wire

import (
	"encoding/binary"
	"math"

	"kvca/state/ledger"
)

// Reader takes a body apart. After the first read beyond its end every further
// one gives zero, and Bad says so.
type Reader struct {
	b   []byte
	bad bool
}

// NewReader reads body, which must stay as it is meanwhile.
func NewReader(body []byte) Reader { return Reader{b: body} }

// Bad is whether more was read than there was.
func (r *Reader) Bad() bool { return r.bad }

// Rest is how many bytes are left.
func (r *Reader) Rest() int { return len(r.b) }

func (r *Reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	part := r.b[:n]
	r.b = r.b[n:]
	return part
}

// U8 reads one byte.
func (r *Reader) U8() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

// U64 reads eight bytes.
func (r *Reader) U64() uint64 {
	if p := r.take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}

// F64 reads a float; one that is no number reads as zero.
func (r *Reader) F64() float64 {
	f := math.Float64frombits(r.U64())
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// Uvarint reads an unsigned varint.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Amount reads an unsigned varint that must not be negative as an int64.
func (r *Reader) Amount() int64 { return int64(min(r.Uvarint(), math.MaxInt64)) }

// Count reads how many elements follow, each at least size bytes: more than can
// be there is malformed.
func (r *Reader) Count(size int) int {
	n := r.Uvarint()
	if n > uint64(len(r.b)/size) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

// ID reads a reservation's id.
func (r *Reader) ID() ledger.ID { return ledger.ID{r.U64(), r.U64()} }

// Bytes reads a counted string of bytes, which aliases the body.
func (r *Reader) Bytes() []byte { return r.take(r.Count(1)) }

func appendU64(b []byte, v uint64) []byte  { return binary.LittleEndian.AppendUint64(b, v) }
func appendF64(b []byte, v float64) []byte { return appendU64(b, math.Float64bits(v)) }

func appendAmount(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(max(v, 0)))
}

func appendID(b []byte, id ledger.ID) []byte { return appendU64(appendU64(b, id[0]), id[1]) }

// AppendBytes appends a counted string of bytes.
func AppendBytes(b, s []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
