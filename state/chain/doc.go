// Package chain turns canonical bytes into the names of their blocks.
//
// The bytes are cut into blocks of a fixed size, and every block is named by a
// hash over the name of the block before it and its own bytes:
//
//	hash[0] = SipHash-2-4(key, 00 00 00 00 00 00 00 00 ‖ block[0])
//	hash[i] = SipHash-2-4(key, hash[i-1] little-endian ‖ block[i])
//
// A hash therefore names a whole prefix, not a piece of text: two requests share
// hash[i] exactly when they share every byte up to the end of block i. The block
// at the end that is not full is dropped; it gets its name when a later request
// has filled it.
//
// # Block size
//
// A block size is 8 to 65,536 bytes, a multiple of 8. Small blocks find where
// two prompts part more exactly and cost more entries in the block map; a large
// block forgets up to one block less a byte of what is shared.
//
// # Marks
//
// A mark names all bytes up to a point inside a block: it is the hash of the name
// of the block before and of the piece of the block so far, under a key that
// differs in its second half, so that it can be no block's name. Marks at the
// ends of messages find the request before where a turn is shorter than a block.
//
// # Key
//
// The key is 16 bytes, read as two little-endian halves as SipHash reads them.
// Every node of a cluster has to use the same one. It is a secret: who knows it
// can compute the names of a prompt and ask whether somebody else has sent it.
// ParseKey reads a key that an operator made; DeriveKey makes one from the
// cluster's name, which keeps nobody out who knows that name.
//
// # Cost
//
// A Hasher copies each block behind the name of the one before, so that SipHash
// sees one contiguous slice, and allocates only when a chain is longer than any
// it has hashed before. The copy stays in the first-level cache and costs a few
// per cent of the hash.
package chain
