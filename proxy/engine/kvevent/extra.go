package kvevent

import (
	"slices"
	"strconv"
	"unsafe"

	"github.com/tinylib/msgp/msgp"

	"kvca/state/kvindex"
)

// Identifiers under which extras that are not media are mixed into a digest.
const (
	embedsID  = "\x00prompt_embeds"
	unknownID = "\x00unknown"
)

// add adds the event that was read to the batch; false if what it says does not
// fit together.
func (d *Decoder) add(from marks) bool {
	e := &d.event
	hashes := d.hashes[from.hashes:len(d.hashes):len(d.hashes)]
	out := Event{Kind: e.kind, Tier: e.tier, Group: e.group, SpecKind: e.specKind, Remote: e.remote}
	switch e.kind {
	case Removed:
		out.Hashes = hashes
		if e.counts {
			out.Counts = d.counts[from.counts:len(d.counts):len(d.counts)]
			if len(out.Counts) != len(hashes) {
				e.fail(fieldCounts)
				return false
			}
		}
	case Stored:
		if !d.readExtraKeys(len(hashes)) {
			e.fail(fieldExtraKeys)
			return false
		}
		if e.lora == "" && e.loraID != 0 {
			e.lora = d.adapter(e.loraID)
		}
		out.Stored = kvindex.Stored{
			Hashes: hashes, Parent: e.parent, HasParent: e.hasParent, BlockSize: e.blockSize, Tier: e.tier, LoRA: e.lora,
		}
		if len(d.tokens) > from.tokens {
			out.Stored.Tokens = d.tokens[from.tokens:len(d.tokens):len(d.tokens)]
		}
		if len(d.extras) > from.extras {
			out.Stored.Extras = d.extras[from.extras:len(d.extras):len(d.extras)]
		}
		if !e.hasParent {
			out.Stored.Salt = e.salt
		}
	}
	d.batch.Events = append(d.batch.Events, out)
	return true
}

// readExtraKeys makes the digests of an event's blocks of its extra keys, none
// where there are none. Keys beyond the blocks are passed over.
func (d *Decoder) readExtraKeys(blocks int) bool {
	n, b, ok := arrayHead(d.event.extraKeys)
	if d.event.extraKeys == nil || (ok && n == 0) {
		return true
	}
	if !ok || n < blocks {
		return false
	}
	from, any := len(d.extras), uint64(0)
	d.extras = slices.Grow(d.extras, blocks)
	for i := range blocks {
		var digest uint64
		if digest, b, ok = d.blockExtras(b, i == 0); !ok {
			return false
		}
		d.extras = append(d.extras, digest)
		any |= digest
	}
	if any == 0 {
		d.extras = d.extras[:from]
	}
	return true
}

// blockExtras makes the digest of one block's extra keys, and takes the adapter
// and the salt from those of an event's first block.
func (d *Decoder) blockExtras(b []byte, first bool) (digest uint64, rest []byte, ok bool) {
	if isNil(b) {
		return 0, b[1:], true
	}
	if !isArray(b) {
		return 0, b, false
	}
	n, b, ok := arrayHead(b)
	// A string is held back until the next one comes: the last may be the salt.
	var held []byte
	for i := 0; i < n && ok; i++ {
		if msgp.NextType(b) != msgp.StrType {
			digest, b, ok = mixKey(digest, b)
			continue
		}
		var s []byte
		if s, b, ok = text(b); !ok || (i == 0 && d.isAdapter(s, first)) {
			continue
		}
		digest, held = mixBare(digest, held), s
	}
	if first && !d.event.hasParent && len(held) > 0 {
		d.event.salt = d.names.of(held)
		held = nil
	}
	return mixBare(digest, held), b, ok
}

// isAdapter says whether the first of a block's extra keys is the adapter's name.
// Where only the adapter's number is known it has to be, and names it.
func (d *Decoder) isAdapter(s []byte, first bool) bool {
	e := &d.event
	if first && e.lora == "" && e.loraID != 0 {
		e.lora = d.names.of(s)
	}
	return e.lora != "" && e.lora == string(s)
}

// adapter is what an adapter is called of which only the engine's own number is
// known. No request names it, so its blocks are not taken for the base model's.
func (d *Decoder) adapter(id int) string {
	var name [32]byte
	return d.names.of(strconv.AppendInt(append(name[:0], "\x00lora_id "...), int64(id), 10))
}

// mixBare mixes a media item without an offset into a digest.
func mixBare(digest uint64, id []byte) uint64 {
	if len(id) == 0 {
		return digest
	}
	return mix(digest, id, 0)
}

// mixKey mixes an extra key that is no string into a digest: [id, offset] of a media
// item, or the digest of prompt embeddings. What else there may be one day makes
// blocks different that differ in it.
func mixKey(digest uint64, b []byte) (_ uint64, rest []byte, ok bool) {
	if rest, ok = skip(b); !ok {
		return digest, b, false
	}
	if msgp.NextType(b) == msgp.BinType {
		embeds, rest, err := msgp.ReadBytesZC(b)
		return kvindex.MixExtra(digest, embedsID, int64(endOf(embeds))), rest, err == nil
	}
	if n, member, isList := arrayHead(b); isList && n >= 2 && msgp.NextType(member) == msgp.StrType {
		if id, at, isText := text(member); isText {
			if offset, _, _, isNumber := number(at); isNumber {
				return mix(digest, id, int64(offset)), rest, true
			}
		}
	}
	return kvindex.MixExtra(mix(digest, b[:len(b)-len(rest)], 0), unknownID, 0), rest, true
}

// mix is kvindex.MixExtra of an identifier that lies in the payload. MixExtra
// keeps nothing of it, so it need not be copied.
func mix(digest uint64, id []byte, offset int64) uint64 {
	return kvindex.MixExtra(digest, unsafe.String(unsafe.SliceData(id), len(id)), offset)
}
