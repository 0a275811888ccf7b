package kvencode

import "github.com/tinylib/msgp/msgp"

func appendTokens(dst []byte, tokens []uint32) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(len(tokens)))
	for _, t := range tokens {
		dst = msgp.AppendUint32(dst, t)
	}
	return dst
}

// appendText writes an empty string as nil.
func appendText(dst []byte, s string) []byte {
	if s == "" {
		return msgp.AppendNil(dst)
	}
	return msgp.AppendString(dst, s)
}

func appendPair(dst []byte, key, value string) []byte {
	return msgp.AppendString(msgp.AppendString(dst, key), value)
}

// appendLoRAID writes the adapter's number, which is the engine's own affair.
func (e *Event) appendLoRAID(dst []byte) []byte {
	if e.LoRA == "" {
		return msgp.AppendNil(dst)
	}
	return msgp.AppendInt(dst, 1)
}

func (e *Event) appendGroup(dst []byte) []byte {
	if e.Group < 0 {
		return msgp.AppendNil(dst)
	}
	return msgp.AppendInt(dst, e.Group)
}

func (e *Event) appendGroupPair(dst []byte) []byte {
	if e.Group < 0 {
		return dst
	}
	return e.appendGroup(msgp.AppendString(dst, "group_idx"))
}

func (e *Event) appendLocalityPair(dst []byte) []byte {
	if !e.Remote {
		return dst
	}
	return appendPair(dst, "locality", "REMOTE")
}

// hasExtra says whether the event has extra keys at all; engines list them, nil for
// each block, where the prompt has none.
func (e *Event) hasExtra() bool { return len(e.Hashes) > 0 }

// appendExtraKeys writes a list with an array for each block that has any: the
// adapter, the media, the salt.
func (e *Event) appendExtraKeys(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(len(e.Hashes)))
	for block := range e.Hashes {
		salted := block == 0 && !e.HasParent && e.Salt != ""
		n := ones(e.LoRA != "", salted)
		for _, m := range e.Media {
			n += ones(m.Block == block)
		}
		if n == 0 {
			dst = msgp.AppendNil(dst)
			continue
		}
		dst = msgp.AppendArrayHeader(dst, n)
		if e.LoRA != "" {
			dst = msgp.AppendString(dst, e.LoRA)
		}
		for _, m := range e.Media {
			if m.Block == block {
				dst = msgp.AppendInt64(msgp.AppendString(msgp.AppendArrayHeader(dst, 2), m.ID), m.Offset)
			}
		}
		if salted {
			dst = msgp.AppendString(dst, e.Salt)
		}
	}
	return dst
}

// ones counts what is true.
func ones(all ...bool) (n uint32) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}
