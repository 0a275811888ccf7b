package kvindex

import (
	"encoding/binary"
	"math/bits"

	"github.com/dchest/siphash"

	"kvca/state/chain"
	"kvca/state/enginehash"
)

// keyer computes the keys of a run of blocks: each is a hash of the one before,
// the block's tokens, and what else its identity depends on. A block that depends on
// nothing else is shorter by that, so no two blocks read the same.
type keyer struct {
	key  chain.Key
	last uint64
	buf  []byte
}

const rootDomain = "kv"

// root begins at a prompt's first token.
func (k *keyer) root(blockSize int, lora, salt string) {
	k.buf = append(k.buf[:0], rootDomain...)
	k.buf = binary.LittleEndian.AppendUint64(k.buf, uint64(blockSize))
	k.buf = binary.LittleEndian.AppendUint64(k.buf, uint64(len(lora)))
	k.buf = append(k.buf, lora...)
	k.buf = append(k.buf, salt...)
	k.last = siphash.Hash(k.key.K0, k.key.K1, k.buf)
}

// next returns the key of the next block.
func (k *keyer) next(tokens []uint32, extra uint64) uint64 {
	if extra == 0 && len(tokens)%2 == 0 {
		k.last = never0(plainKey(k.key, k.last, tokens))
		return k.last
	}
	size := 8 + 4*len(tokens)
	if cap(k.buf) < size+8 {
		k.buf = make([]byte, size+8)
	}
	b := k.buf[:size]
	binary.LittleEndian.PutUint64(b, k.last)
	for i, t := range tokens {
		binary.LittleEndian.PutUint32(b[8+4*i:], t)
	}
	if extra != 0 {
		b = binary.LittleEndian.AppendUint64(b, extra)
	}
	k.last = never0(siphash.Hash(k.key.K0, k.key.K1, b))
	return k.last
}

// plainKey is the SipHash-2-4 of a block that depends on nothing but the one before and an
// even number of tokens. It is most of what a lookup computes, so the tokens are not
// written down as bytes first, and two rounds are written out: a loop over them takes
// a quarter longer.
func plainKey(key chain.Key, last uint64, tokens []uint32) uint64 {
	v0, v1 := key.K0^0x736f6d6570736575, key.K1^0x646f72616e646f6d
	v2, v3 := key.K0^0x6c7967656e657261, key.K1^0x7465646279746573
	size := uint64(8+4*len(tokens)) << 56
	for word, more := last, true; more; {
		v3 ^= word
		v0 += v1
		v2 += v3
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v2 += v1
		v0 = bits.RotateLeft64(v0, 32) + v3
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 = bits.RotateLeft64(v2, 32)
		v0 += v1
		v2 += v3
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v2 += v1
		v0 = bits.RotateLeft64(v0, 32) + v3
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 = bits.RotateLeft64(v2, 32)
		v0 ^= word
		switch {
		case len(tokens) > 1:
			word, tokens = uint64(tokens[0])|uint64(tokens[1])<<32, tokens[2:]
		case size != 0:
			word, size = size, 0
		default:
			more = false
		}
	}
	v2 ^= 0xff
	for range 4 {
		v0 += v1
		v2 += v3
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v2 += v1
		v0 = bits.RotateLeft64(v0, 32) + v3
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 = bits.RotateLeft64(v2, 32)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

// named returns the key of a block that an engine calls hash, by an algorithm's print.
func named(key chain.Key, hash, print uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], hash)
	binary.LittleEndian.PutUint64(b[8:], print)
	return never0(siphash.Hash(key.K0, key.K1, b[:]))
}

// never0 keeps 0 free: it stands for no key.
func never0(key uint64) uint64 {
	if key == 0 {
		return 1
	}
	return key
}

// printOf tells chains apart by what they do: chains of equal prints name the same
// prompts alike. It is never 0, which stands for matching on tokens.
func printOf(c *enginehash.Chain) uint64 {
	if c == nil {
		return 0
	}
	hashes := c.Append(nil, &enginehash.Prompt{
		Tokens: []uint32{1, 2}, LoRA: "lora", LoRAPath: "path", Salt: "salt",
		Media: []enginehash.Media{{ID: "media", Offset: 0, Length: 2}},
	}, 1)
	print := uint64(1)
	for _, h := range hashes {
		print = print*0x9e3779b97f4a7c15 + h
	}
	return print | 1
}

// extras computes the digests of a prompt's blocks, one after the other.
type extras struct {
	media     []Media
	blockSize int
	start     int
}

// next is the digest of the next block, 0 where no item overlaps it.
func (e *extras) next() (digest uint64) {
	start, end := e.start, e.start+e.blockSize
	e.start = end
	for len(e.media) > 0 && e.media[0].Length <= max(start-e.media[0].Offset, 0) {
		e.media = e.media[1:]
	}
	for _, m := range e.media {
		if m.Offset >= end {
			break
		}
		if m.Length > max(start-m.Offset, 0) {
			digest = MixExtra(digest, m.ID, int64(m.Offset-start))
		}
	}
	return digest
}
