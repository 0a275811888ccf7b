package engine

import (
	"encoding/binary"

	"github.com/dchest/siphash"
)

// tokenBytes is how much text a token of the simulated tokenizer holds. English averages about that in real ones.
const tokenBytes = 4

// tokens are ids. The id of a piece of text is its bytes, little endian, padded with zeros, so that ids turn back into text.
type tokens []uint32

// appendText adds the tokens of a text: four bytes each from its start, the last one as long as what is left.
func (t tokens) appendText(s string) tokens {
	for len(s) >= tokenBytes {
		t = append(t, uint32(s[0])|uint32(s[1])<<8|uint32(s[2])<<16|uint32(s[3])<<24)
		s = s[tokenBytes:]
	}
	if s == "" {
		return t
	}
	var last uint32
	for i := range len(s) {
		last |= uint32(s[i]) << (8 * i)
	}
	return append(t, last)
}

// text is the reverse, as far as the ids came from text.
func (t tokens) text() string {
	out := make([]byte, 0, len(t)*tokenBytes)
	for _, id := range t {
		for ; id != 0; id >>= 8 {
			out = append(out, byte(id))
		}
	}
	return string(out)
}

// chain names the full blocks of a prompt: each hash covers its block and, by the hash before it, all that precedes.
func (t tokens) chain(root uint64, unit int) []uint64 {
	hashes := make([]uint64, 0, len(t)/unit)
	buf := make([]byte, 4*unit)
	for ; len(t) >= unit; t = t[unit:] {
		for i, id := range t[:unit] {
			binary.LittleEndian.PutUint32(buf[4*i:], id)
		}
		root = siphash.Hash(root, uint64(unit), buf)
		hashes = append(hashes, root)
	}
	return hashes
}

// digest is a number that depends on every token.
func (t tokens) digest(root uint64, chain []uint64, unit int) uint64 {
	if len(chain) > 0 {
		root = chain[len(chain)-1]
	}
	for _, id := range t[len(chain)*unit:] {
		root = mix(root ^ uint64(id))
	}
	return mix(root ^ uint64(len(t)))
}

// mix is splitmix64's step: it spreads every bit of x over the result.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// root is where the chains of one model and one cache salt start.
func root(model, salt string) uint64 {
	return siphash.Hash(siphash.Hash(0, 1, []byte(model)), 2, []byte(salt))
}
