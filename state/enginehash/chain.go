package enginehash

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// defaultSeed is what vLLM hashes where PYTHONHASHSEED is not set and the
// algorithm is one of the SHA-256 ones.
const defaultSeed = "vllm-none-hash"

// maxDigest is the length of the longest digest in bytes.
const maxDigest = 32

// Prompt is what the hashes of a prompt depend on.
type Prompt struct {
	Tokens []uint32
	// LoRA is the adapter's name, empty for the base model; LoRAPath is where the
	// engine loaded it from, which its hashes depend on, too.
	LoRA, LoRAPath string
	// Salt is the cache salt, empty for none.
	Salt string
	// Media are the items among the tokens, in order, none over another.
	Media []Media
}

// Media is an item (an image, a piece of audio) whose placeholder takes Length
// tokens from Offset on.
type Media struct {
	ID             string
	Offset, Length int
}

// Chain computes the hashes of one configuration of engines.
type Chain struct {
	algorithm
	none     [maxDigest]byte
	untagged bool
	scratch  *sync.Pool // of *scratch
}

// scratch is what the computation of one block's digest needs.
type scratch struct {
	bytes  []byte
	extras []extra
	digest [maxDigest]byte
}

// New makes the chain of engines that were started with the given
// --prefix-caching-hash-algo and PYTHONHASHSEED, the latter empty where it is not
// set.
func New(name, seed string) (*Chain, error) {
	a, ok := algorithms[name]
	if !ok {
		return nil, fmt.Errorf("hash algorithm %q: want one of %s, as the engine's --prefix-caching-hash-algo", name, names())
	}
	if seed == "" {
		if !a.fixedSeed {
			return nil, fmt.Errorf("hash algorithm %s without a seed: each engine process has random hashes; "+
				"start all engines with the same PYTHONHASHSEED and give that, or use sha256_cbor", name)
		}
		seed = defaultSeed
	}
	c := &Chain{algorithm: a, scratch: &sync.Pool{New: func() any { return new(scratch) }}}
	c.name = name
	c.hash(&c.none, c.serial.text(nil, seed))
	return c, nil
}

// Untagged is the same chain as engines before the tags of extras compute it. It
// differs where a prompt has an adapter, media or a salt.
func (c *Chain) Untagged() *Chain {
	u := *c
	u.untagged = true
	return &u
}

// Name is the algorithm's, as given to New.
func (c *Chain) Name() string { return c.name }

// DigestSize is the length of a digest in bytes.
func (c *Chain) DigestSize() int { return c.size }

// Append appends the wire hashes of the prompt's full blocks. A block size below 1
// has no blocks.
func (c *Chain) Append(dst []uint64, p *Prompt, blockSize int) []uint64 {
	c.each(p, blockSize, func(digest []byte) {
		dst = append(dst, binary.BigEndian.Uint64(digest[len(digest)-8:]))
	})
	return dst
}

// AppendDigests appends the whole digests of the prompt's full blocks one after
// the other, as engines name blocks where VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=0.
func (c *Chain) AppendDigests(dst []byte, p *Prompt, blockSize int) []byte {
	c.each(p, blockSize, func(digest []byte) { dst = append(dst, digest...) })
	return dst
}

// each calls yield with the digest of each full block; it is valid during the call.
func (c *Chain) each(p *Prompt, blockSize int, yield func(digest []byte)) {
	if blockSize < 1 || blockSize > len(p.Tokens) {
		return
	}
	s := c.scratch.Get().(*scratch)
	defer c.release(s)
	s.digest = c.none
	media := p.Media
	for from := 0; from+blockSize <= len(p.Tokens); from += blockSize {
		to := from + blockSize
		for len(media) > 0 && media[0].Offset+media[0].Length <= from {
			media = media[1:]
		}
		s.extras = appendExtras(s.extras[:0], p, media, from, to)
		s.bytes = c.serial.block(s.bytes[:0], s.digest[:c.size], p.Tokens[from:to], s.extras, c.untagged)
		c.hash(&s.digest, s.bytes)
		yield(s.digest[:c.size])
	}
}

// release gives scratch memory back, without holding on to the prompt's strings.
func (c *Chain) release(s *scratch) {
	clear(s.extras[:cap(s.extras)])
	c.scratch.Put(s)
}
