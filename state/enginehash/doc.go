// Package enginehash computes vLLM's own block hashes from tokens: what an engine
// calls a block, where its events name blocks without saying what is in them.
//
// The digest of a block is a hash over the digest of the block before it, the
// block's tokens and its extras; before the first block stands the hash of a seed:
//
//	digest[-1] = H(seed)
//	digest[i]  = H([digest[i-1], tokens[i], extras[i] or nothing])
//
// The last, partial block has none. On the wire a digest is its last 8 bytes, big
// endian.
//
// # Algorithms
//
// The names are those of --prefix-caching-hash-algo. H is SHA-256 or XXH3-128 (in
// its canonical, big endian form), of what it is given as canonical CBOR (_cbor) or
// in Python's pickle protocol 5. The latter is written as CPython writes it for
// what occurs here: strings of less than 64 KiB, and no two of one block that are
// the same object, apart from the tags below.
//
// # Seed
//
// The seed is the engine's PYTHONHASHSEED. Engines without one use a constant for
// the SHA-256 algorithms (since about vLLM 0.28) and something random for the
// others: nobody else can know those hashes, and New says so.
//
// # Extras
//
// In this order: the adapter in each block, the media items that overlap the
// block, the cache salt in the first block. Engines since 0.32 at the latest tag
// them, and hash the adapter's path too; Untagged gives the form before that.
//
//	tagged    ["lora", name, path]  ["mm", id, offset from the block's start]  ["cache_salt", salt]
//	untagged  name                  [id, offset from the block's start]        salt
//
// Prompt embeddings are not known to a gateway and not covered.
//
// # Cost
//
// A Chain is immutable and serves any number of goroutines. What Append needs
// besides its result it takes from a pool: it allocates nothing per block. The
// memory of the pool is bounded by the size of the largest block.
package enginehash
