package wire

import (
	"encoding/binary"
	"math"

	"kvca/state/kvindex"
)

// Bounds of what is told of a source. Beyond them a frame is malformed.
const (
	// MaxRank is more than any engine's data-parallel ranks.
	MaxRank = 1 << 16
	// MaxWord bounds a model's name, a problem and a backend's id, in bytes.
	MaxWord = 512
	// MaxBlockSize bounds an engine's block, in tokens.
	MaxBlockSize = 1 << 20
)

// SourceID names what one engine holds: its backend's key, and the rank in it.
type SourceID struct {
	Key  uint64
	Rank int
}

// AppendSourceID appends a source's name.
func AppendSourceID(b []byte, id SourceID) []byte {
	return binary.AppendUvarint(appendU64(b, id.Key), uint64(id.Rank))
}

// SourceID reads a source's name.
func (r *Reader) SourceID() SourceID {
	return SourceID{Key: r.U64(), Rank: r.bounded(MaxRank)}
}

// bounded reads a number that is malformed beyond most.
func (r *Reader) bounded(most uint64) int {
	v := r.Uvarint()
	if v > most {
		r.bad, r.b = true, nil
		return 0
	}
	return int(v)
}

// word reads a string of at most MaxWord bytes.
func (r *Reader) word() string {
	b := r.Bytes()
	if len(b) > MaxWord {
		r.bad, r.b = true, nil
		return ""
	}
	return string(b)
}

// appendWord appends a string, cut to what may be read.
func appendWord(b []byte, s string) []byte { return AppendBytes(b, []byte(s[:min(len(s), MaxWord)])) }

// Offer of a source: what is told of it beside its blocks.
type SourceOffer struct {
	ID SourceID
	// Live is whether what is told is what the engine holds now.
	Live bool
	// Gone ends the offer; nothing else counts then.
	Gone  bool
	Model string
	// Problem says in words why it is not live.
	Problem string
}

const (
	offerLive = 1 << iota
	offerGone
)

// AppendSourceOffer appends a KVOffer frame.
func AppendSourceOffer(b []byte, o *SourceOffer) []byte {
	b = append(AppendSourceID(b, o.ID), flag(o.Live, offerLive)|flag(o.Gone, offerGone))
	return appendWord(appendWord(b, o.Model), o.Problem)
}

// SourceOffer reads a KVOffer frame.
func (r *Reader) SourceOffer() SourceOffer {
	o := SourceOffer{ID: r.SourceID()}
	flags := r.U8()
	o.Live, o.Gone = flags&offerLive != 0, flags&offerGone != 0
	o.Model, o.Problem = r.word(), r.word()
	return o
}

// AppendAgentOffer appends an AgentOffer frame: an offer of a backend by its id.
func AppendAgentOffer(b []byte, backend string, o *SourceOffer) []byte {
	return AppendSourceOffer(appendWord(b, backend), o)
}

// AgentOffer reads an AgentOffer frame.
func (r *Reader) AgentOffer() (backend string, o SourceOffer) { return r.word(), r.SourceOffer() }

func flag(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}

// AppendWant appends a KVWant frame: the source is to be told from its beginning,
// or no more.
func AppendWant(b []byte, id SourceID, want bool) []byte {
	return append(AppendSourceID(b, id), flag(want, 1))
}

// Want reads a KVWant frame.
func (r *Reader) Want() (id SourceID, want bool) { return r.SourceID(), r.U8()&1 != 0 }

// Part is the head of a KVPart or an AgentPart frame.
type Part struct {
	ID SourceID
	// Epoch numbers the streams of a teller: a greater one takes the place of any
	// before. Seq numbers the parts of a stream, from 1: one that is missing ends it.
	Epoch, Seq uint64
	// Begin is set in the first part of a stream: nothing is known yet.
	Begin bool
	// Reset says that the engine holds nothing of what was told before this part.
	Reset bool
	// Last ends the copy: what follows are changes.
	Last bool
	// Ack asks for an acknowledgement.
	Ack bool
	// BlockSize is that of the blocks, in tokens; 0 where it is not known yet.
	BlockSize int
}

const (
	partBegin = 1 << iota
	partReset
	partLast
	partAck
)

// AppendPart appends the head of a part.
func AppendPart(b []byte, p *Part) []byte {
	b = appendU64(AppendSourceID(b, p.ID), p.Epoch)
	b = binary.AppendUvarint(b, p.Seq)
	b = append(b, flag(p.Begin, partBegin)|flag(p.Reset, partReset)|flag(p.Last, partLast)|flag(p.Ack, partAck))
	return binary.AppendUvarint(b, uint64(p.BlockSize))
}

// Part reads the head of a part. A KVPart frame has Held up to its end, an
// AgentPart has Events.
func (r *Reader) Part() Part {
	p := Part{ID: r.SourceID(), Epoch: r.U64(), Seq: r.Uvarint()}
	flags := r.U8()
	p.Begin, p.Reset = flags&partBegin != 0, flags&partReset != 0
	p.Last, p.Ack = flags&partLast != 0, flags&partAck != 0
	p.BlockSize = r.bounded(MaxBlockSize)
	return p
}

// AppendKVAck appends a KVAck frame: all parts of that stream up to seq are applied.
func AppendKVAck(b []byte, id SourceID, epoch, seq uint64) []byte {
	return binary.AppendUvarint(appendU64(AppendSourceID(b, id), epoch), seq)
}

// KVAck reads a KVAck frame.
func (r *Reader) KVAck() (id SourceID, epoch, seq uint64) {
	return r.SourceID(), r.U64(), r.Uvarint()
}

// allTiers has a bit for each tier.
const allTiers = 1<<kvindex.Tiers - 1

// AppendHeld appends one block: what is gone has no sample.
func AppendHeld(b []byte, h *kvindex.Held) []byte {
	b = append(appendU64(b, h.Key), h.Tiers&allTiers)
	if h.Tiers&allTiers == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(h.Sample[0]))
	return binary.AppendUvarint(b, uint64(h.Sample[1]))
}

// Held reads one block.
func (r *Reader) Held() kvindex.Held {
	h := kvindex.Held{Key: r.U64(), Tiers: r.U8() & allTiers}
	if h.Tiers != 0 {
		h.Sample = [2]uint32{r.token(), r.token()}
	}
	return h
}

func (r *Reader) token() uint32 { return uint32(r.bounded(math.MaxUint32)) }
