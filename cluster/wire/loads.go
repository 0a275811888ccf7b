package wire

import "encoding/binary"

// AppendSubtotals appends a Subtotals frame's body up to its n figures. A
// complete one says that the sender holds nothing on any other backend.
func AppendSubtotals(b []byte, complete bool, n int) []byte {
	flags := byte(0)
	if complete {
		flags = 1
	}
	return binary.AppendUvarint(append(b, flags), uint64(n))
}

// Subtotals reads a Subtotals frame up to its figures, and how many follow.
func (r *Reader) Subtotals() (complete bool, n int) {
	return r.U8()&1 != 0, r.Count(figureBytes)
}

// AppendAge appends to an Ages frame: for how many milliseconds the location has
// been idle that the full mirror of a backend would evict next, plus one; 0 where
// the mirror is not full.
func AppendAge(b []byte, key uint64, age uint64) []byte {
	return binary.AppendUvarint(appendU64(b, key), age)
}

// Age reads an element of an Ages frame, which has them up to its end.
func (r *Reader) Age() (key, age uint64) { return r.U64(), r.Uvarint() }
