package enginehash

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
)

// serializer writes what is hashed.
type serializer interface {
	// text appends a string by itself.
	text(dst []byte, s string) []byte
	// block appends a block: parent, tokens and extras.
	block(dst, parent []byte, tokens []uint32, extras []extra, untagged bool) []byte
}

// algorithm is a way of hashing blocks.
type algorithm struct {
	name      string
	serial    serializer
	hash      func(sum *[maxDigest]byte, p []byte)
	size      int  // of a digest
	fixedSeed bool // engines without a configured seed agree on one
}

var algorithms = map[string]algorithm{
	"sha256":      {serial: pickle{}, hash: sha, size: 32, fixedSeed: true},
	"sha256_cbor": {serial: cbor{}, hash: sha, size: 32, fixedSeed: true},
	"xxhash":      {serial: pickle{}, hash: xxh, size: 16},
	"xxhash_cbor": {serial: cbor{}, hash: xxh, size: 16},
}

func names() string {
	return strings.Join(slices.Sorted(maps.Keys(algorithms)), ", ")
}

func sha(sum *[maxDigest]byte, p []byte) { *sum = sha256.Sum256(p) }

func xxh(sum *[maxDigest]byte, p []byte) {
	digest := xxh3.Hash128(p).Bytes()
	copy(sum[:], digest[:])
}
