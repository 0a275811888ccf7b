package wire

import (
	"encoding/binary"

	"kvca/state/ledger"
)

// Op is what became of a reservation.
type Op byte

// The changes. All may come twice, in any order, or for unknown ids.
const (
	OpPrefilled Op = 1 + iota
	OpReleased
	// OpHeld: the sender holds it, whatever was agreed before.
	OpHeld
)

// Hold is a live reservation on the backend of that key.
type Hold struct {
	ID        ledger.ID
	Key       uint64
	Novel     int64
	Prefilled bool
}

// holdBytes is the least that a hold takes.
const holdBytes = 16 + 8 + 1 + 1

// AppendChange appends one change; key and novel matter for OpHeld.
func AppendChange(b []byte, op Op, h *Hold) []byte {
	b = append(b, byte(op))
	if op == OpHeld {
		return AppendHold(b, h)
	}
	return appendID(b, h.ID)
}

// Change reads one change; a Changes frame is changes up to its end.
func (r *Reader) Change() (op Op, h Hold) {
	switch op = Op(r.U8()); op {
	case OpHeld:
		h = r.Hold()
	case OpPrefilled, OpReleased:
		h.ID = r.ID()
	default:
		r.bad, r.b = true, nil
	}
	return op, h
}

// AppendHold appends one hold.
func AppendHold(b []byte, h *Hold) []byte {
	b = appendID(b, h.ID)
	b = appendU64(b, h.Key)
	b = appendAmount(b, h.Novel)
	if h.Prefilled {
		return append(b, 1)
	}
	return append(b, 0)
}

// Hold reads one hold.
func (r *Reader) Hold() Hold {
	return Hold{ID: r.ID(), Key: r.U64(), Novel: r.Amount(), Prefilled: r.U8() != 0}
}

// Parts of a held set, as flags of a HeldSet frame.
const (
	FirstPart = 1
	LastPart  = 2
)

// AppendHeldSet appends a HeldSet frame's body up to its n holds.
func AppendHeldSet(b []byte, flags byte, n int) []byte {
	return binary.AppendUvarint(append(b, flags), uint64(n))
}

// HeldSet reads a HeldSet frame up to its holds, and how many follow. Behind
// them come the ids whose answers are on their way.
func (r *Reader) HeldSet() (flags byte, n int) { return r.U8(), r.Count(holdBytes) }

// AppendIDs appends a counted list of ids.
func AppendIDs(b []byte, ids []ledger.ID) []byte {
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = appendID(b, id)
	}
	return b
}

// IDs reads a counted list of ids and appends them to dst.
func (r *Reader) IDs(dst []ledger.ID) []ledger.ID {
	for range r.Count(16) {
		dst = append(dst, r.ID())
	}
	return dst
}
