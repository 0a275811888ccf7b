package kvencode

import (
	"github.com/tinylib/msgp/msgp"

	"kvca/proxy/engine/kvevent"
)

// digestPad are the bytes of a digest before its hash.
const digestPad = 24

// Append appends a batch in the given form.
func Append(dst []byte, f Form, b *Batch) []byte {
	dst = msgp.AppendFloat64(msgp.AppendArrayHeader(dst, 3), b.Time)
	dst = msgp.AppendArrayHeader(dst, uint32(len(b.Events)))
	for i := range b.Events {
		if f.style == asMap {
			dst = f.appendMap(dst, &b.Events[i])
		} else {
			dst = f.appendArray(dst, &b.Events[i])
		}
	}
	if !b.HasRank {
		return msgp.AppendNil(dst)
	}
	return msgp.AppendInt(dst, b.Rank)
}

// appendMap writes fields in the engine's order; those that have a default are left
// out where they equal it.
func (f Form) appendMap(dst []byte, e *Event) []byte {
	switch e.Kind {
	case kvevent.Removed:
		return f.appendRemovedMap(dst, e)
	case kvevent.Cleared:
		return appendPair(msgp.AppendMapHeader(dst, 1), "type", e.Kind.String())
	}
	extra := e.hasExtra()
	dst = msgp.AppendMapHeader(dst, 8+ones(extra, e.Group >= 0, e.SpecKind != "", e.Remote))
	dst = appendPair(dst, "type", e.Kind.String())
	dst = f.appendHashes(msgp.AppendString(dst, "block_hashes"), e.Hashes)
	dst = f.appendParent(msgp.AppendString(dst, "parent_block_hash"), e)
	dst = appendTokens(msgp.AppendString(dst, "token_ids"), e.Tokens)
	dst = msgp.AppendInt(msgp.AppendString(dst, "block_size"), e.BlockSize)
	dst = e.appendLoRAID(msgp.AppendString(dst, "lora_id"))
	dst = appendText(msgp.AppendString(dst, "medium"), e.Medium)
	dst = appendText(msgp.AppendString(dst, "lora_name"), e.LoRA)
	if extra {
		dst = e.appendExtraKeys(msgp.AppendString(dst, "extra_keys"))
	}
	dst = e.appendGroupPair(dst)
	if e.SpecKind != "" {
		dst = appendPair(dst, "kv_cache_spec_kind", e.SpecKind)
	}
	return e.appendLocalityPair(dst)
}

func (f Form) appendRemovedMap(dst []byte, e *Event) []byte {
	dst = msgp.AppendMapHeader(dst, 3+ones(e.Group >= 0, e.Remote, e.Counts != nil))
	dst = appendPair(dst, "type", e.Kind.String())
	dst = f.appendHashes(msgp.AppendString(dst, "block_hashes"), e.Hashes)
	dst = appendText(msgp.AppendString(dst, "medium"), e.Medium)
	dst = e.appendGroupPair(dst)
	dst = e.appendLocalityPair(dst)
	if e.Counts != nil {
		dst = msgp.AppendArrayHeader(msgp.AppendString(dst, "remaining_copy_counts"), uint32(len(e.Counts)))
		for _, n := range e.Counts {
			dst = msgp.AppendInt(dst, n)
		}
	}
	return dst
}

func (f Form) appendArray(dst []byte, e *Event) []byte {
	switch e.Kind {
	case kvevent.Cleared:
		return msgp.AppendString(msgp.AppendArrayHeader(dst, 1), e.Kind.String())
	case kvevent.Removed:
		return f.appendRemovedArray(dst, e)
	}
	n := f.stored
	salted := f.style == asSGLang && e.Salt != ""
	dst = msgp.AppendString(msgp.AppendArrayHeader(dst, uint32(n)+ones(salted)), e.Kind.String())
	dst = f.appendParent(f.appendHashes(dst, e.Hashes), e)
	dst = msgp.AppendInt(appendTokens(dst, e.Tokens), e.BlockSize)
	if f.style == asSGLang {
		dst = msgp.AppendNil(dst) // it never says
	} else {
		dst = e.appendLoRAID(dst)
	}
	if n > 6 {
		dst = appendText(dst, e.Medium)
	}
	if salted {
		dst = appendPair(msgp.AppendMapHeader(dst, 1), "cache_salt", e.Salt)
	}
	if n > 7 {
		dst = appendText(dst, e.LoRA)
	}
	if n > 8 {
		dst = e.appendExtraKeys(dst)
	}
	if n > 9 {
		dst = e.appendGroup(dst)
	}
	if n > 10 {
		dst = appendText(dst, e.SpecKind)
	}
	if n > 11 {
		dst = msgp.AppendNil(dst) // the sliding window
	}
	return dst
}

// appendRemovedArray writes as many elements as the release of the form does.
func (f Form) appendRemovedArray(dst []byte, e *Event) []byte {
	n := 2 + ones(f.stored > 6, f.stored > 9)
	dst = msgp.AppendString(msgp.AppendArrayHeader(dst, n), e.Kind.String())
	dst = f.appendHashes(dst, e.Hashes)
	if n > 2 {
		dst = appendText(dst, e.Medium)
	}
	if n > 3 {
		dst = e.appendGroup(dst)
	}
	return dst
}

func (f Form) appendHashes(dst []byte, hashes []uint64) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(len(hashes)))
	for _, h := range hashes {
		dst = f.appendHash(dst, h)
	}
	return dst
}

func (f Form) appendHash(dst []byte, h uint64) []byte {
	switch {
	case f.digests:
		var digest [digestPad + 8]byte
		for i := range digest {
			digest[i] = byte(h >> (8 * (7 - i%8))) // the last 8 bytes are the hash
		}
		return msgp.AppendBytes(dst, digest[:])
	case f.style == asSGLang:
		return msgp.AppendInt64(dst, int64(h))
	}
	return msgp.AppendUint64(dst, h)
}

func (f Form) appendParent(dst []byte, e *Event) []byte {
	if !e.HasParent {
		return msgp.AppendNil(dst)
	}
	return f.appendHash(dst, e.Parent)
}
