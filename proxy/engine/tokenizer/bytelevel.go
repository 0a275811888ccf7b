package tokenizer

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// Byte-level vocabularies spell each byte as a printable character: itself where it
// is one in Latin-1, else one from U+0100 on.

// byteOf is the byte of each such character, byte 0 being U+0100.
var byteOf = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if printable := r >= '!' && r <= '~' || r >= 0xa1 && r <= 0xac || r >= 0xae; !printable {
			r = next
			next++
		}
		m[r] = byte(b)
	}
	return m
}()

// bytesOf is what a name of the vocabulary spells; false where it is no spelling of
// bytes, as that of a special token need not be.
func bytesOf(name string) (string, bool) {
	var b strings.Builder
	for _, r := range name {
		v, ok := byteOf[r]
		if !ok {
			return "", false
		}
		b.WriteByte(v)
	}
	return b.String(), true
}

// newBPE builds the tables of a model.
func newBPE(vocab map[string]uint32, merges []merge) (*bpe, error) {
	b := &bpe{merges: newPairs(len(merges)), seed: maphash.MakeSeed()}
	for i := range b.bytes {
		b.bytes[i] = none
	}
	for r, v := range byteOf {
		if id, ok := vocab[string(r)]; ok {
			b.bytes[v] = id
		} else if occursInUTF8(v) {
			return nil, fmt.Errorf("vocabulary without a token for byte 0x%02x: not BPE over bytes", v)
		}
	}
	for rank, m := range merges {
		left, okLeft := vocab[m[0]]
		right, okRight := vocab[m[1]]
		id, ok := vocab[m[0]+m[1]]
		if !okLeft || !okRight || !ok {
			return nil, fmt.Errorf("merge %d of %q and %q: one of them or the whole isn't in the vocabulary", rank, m[0], m[1])
		}
		b.merges.set(left, right, uint32(rank), id)
	}
	return b, nil
}

// occursInUTF8 is whether valid UTF-8 can have the byte.
func occursInUTF8(b byte) bool { return b < 0xc0 || b >= 0xc2 && b < 0xf5 }
