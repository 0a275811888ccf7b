package wire

import (
	"encoding/binary"
	"time"

	"kvca/state/blockmap"
)

// AppendDelta appends a Delta frame's header; runs follow up to its end.
func AppendDelta(b []byte, seq uint64) []byte { return appendU64(b, seq) }

// Delta reads a Delta frame's header.
func (r *Reader) Delta() (seq uint64) { return r.U64() }

// AppendAck appends an Ack frame: deltas up to seq are applied, the last of
// them since held ago.
func AppendAck(b []byte, seq uint64, held time.Duration) []byte {
	return appendAmount(appendU64(b, seq), held.Microseconds())
}

// Ack reads an Ack frame.
func (r *Reader) Ack() (seq uint64, held time.Duration) {
	return r.U64(), time.Duration(min(r.Uvarint(), maxIdle)) * time.Microsecond
}

// AppendDigest appends a Digest frame: the sender's digest, in a round of that
// number, which wants at most limit locations, 0 for all.
func AppendDigest(b []byte, round uint64, limit int, d *blockmap.Digest) []byte {
	b = appendAmount(appendU64(b, round), int64(limit))
	for _, v := range d {
		b = appendU64(b, v)
	}
	return b
}

// Digest reads a Digest frame.
func (r *Reader) Digest(d *blockmap.Digest) (round uint64, limit int) {
	round, limit = r.U64(), int(min(r.Uvarint(), 1<<31))
	for i := range d {
		d[i] = r.U64()
	}
	return round, limit
}

// AppendPage appends a Page frame's header; runs follow up to its end.
func AppendPage(b []byte, round uint64) []byte { return appendU64(b, round) }

// Page reads a Page frame's header.
func (r *Reader) Page() (round uint64) { return r.U64() }

// AppendPageEnd appends a PageEnd frame: what a round's answer came to.
func AppendPageEnd(b []byte, round uint64, buckets, locations int, more bool) []byte {
	b = binary.AppendUvarint(appendU64(b, round), uint64(buckets))
	b = binary.AppendUvarint(b, uint64(locations))
	if more {
		return append(b, 1)
	}
	return append(b, 0)
}

// PageEnd reads a PageEnd frame: in how many buckets the two differ, how many
// locations were sent, and whether the limit has cut them off.
func (r *Reader) PageEnd() (round uint64, buckets, locations int, more bool) {
	return r.U64(), int(min(r.Uvarint(), 1<<31)), int(min(r.Uvarint(), 1<<31)), r.U8() != 0
}

// AppendPageAck appends a PageAck frame: so many bytes of a round's pages are
// applied.
func AppendPageAck(b []byte, round, bytes uint64) []byte {
	return binary.AppendUvarint(appendU64(b, round), bytes)
}

// PageAck reads a PageAck frame.
func (r *Reader) PageAck() (round, bytes uint64) { return r.U64(), r.Uvarint() }
