package wire

import (
	"encoding/binary"

	"kvca/state/kvindex"
)

// Event is what an agent tells of an engine: blocks that it holds now, or that it
// holds no more in a tier. The slices of what is read are used again.
type Event struct {
	// Removed says that Stored.Hashes are gone from Stored.Tier; nothing else of it
	// counts then.
	Removed bool
	Stored  kvindex.Stored
}

const (
	eventRemoved = 1 << iota
	eventParent
	eventExtras
)

// AppendEvent appends one event.
func AppendEvent(b []byte, e *Event) []byte {
	s := &e.Stored
	b = append(b, flag(e.Removed, eventRemoved)|flag(s.HasParent, eventParent)|flag(s.Extras != nil, eventExtras), byte(s.Tier))
	b = appendHashes(b, s.Hashes)
	if e.Removed {
		return b
	}
	if s.HasParent {
		b = appendU64(b, s.Parent)
	}
	b = binary.AppendUvarint(b, uint64(s.BlockSize))
	b = appendWord(appendWord(b, s.LoRA), s.Salt)
	b = binary.AppendUvarint(b, uint64(len(s.Tokens)))
	for _, t := range s.Tokens {
		b = binary.AppendUvarint(b, uint64(t))
	}
	if s.Extras != nil {
		b = appendHashes(b, s.Extras)
	}
	return b
}

func appendHashes(b []byte, list []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, h := range list {
		b = appendU64(b, h)
	}
	return b
}

// Event reads one event into dst, whose slices are used again.
func (r *Reader) Event(dst *Event) {
	flags, s := r.U8(), &dst.Stored
	dst.Removed = flags&eventRemoved != 0
	*s = kvindex.Stored{Hashes: s.Hashes, Tokens: s.Tokens[:0], Tier: kvindex.Tier(r.U8())}
	if s.Tier >= kvindex.Tiers {
		r.bad, r.b = true, nil
	}
	s.Hashes = r.hashes(s.Hashes)
	if dst.Removed {
		return
	}
	if s.HasParent = flags&eventParent != 0; s.HasParent {
		s.Parent = r.U64()
	}
	s.BlockSize = r.bounded(MaxBlockSize)
	s.LoRA, s.Salt = r.word(), r.word()
	for range r.Count(1) {
		s.Tokens = append(s.Tokens, r.token())
	}
	if flags&eventExtras != 0 {
		s.Extras = r.hashes(make([]uint64, 0, len(s.Hashes)))
	}
	if s.Extras != nil && len(s.Extras) != len(s.Hashes) {
		r.bad, r.b = true, nil
	}
}

func (r *Reader) hashes(dst []uint64) []uint64 {
	dst = dst[:0]
	for range r.Count(8) {
		dst = append(dst, r.U64())
	}
	return dst
}
