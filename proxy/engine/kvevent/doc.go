// Package kvevent reads what engines publish about their KV caches: a batch of
// events, as MessagePack, into the words of package kvindex.
//
// # Dialects
//
// One decoder reads them all; it is not told which engine it listens to.
//
//	vLLM 0.9 to 0.23     events are arrays of 6, 7, 8, 9, 10 or 12 elements
//	vLLM 0.24 and later  events are maps
//	SGLang, TRT-LLM      arrays of 6 or 7; hashes are signed; SGLang puts a map with
//	                     the cache salt where vLLM has the adapter's name
//
// A batch is [time, events, rank]. What is missing at the end of an array is nil,
// what is too much is passed over, as are unknown keys of a map. A hash is a
// number, signed or not, or the digest itself, of which the last 8 bytes count:
// all name the same block. An event with an unknown tag is passed over and counted.
//
// # Identity
//
// A block is more than its tokens. The adapter is lora_name; where that is missing
// but lora_id isn't, the first of a block's extra keys, or (vLLM up to 0.13) a name
// made of the number, which no request has. The rest of the extra keys becomes one
// digest a block (kvindex.MixExtra): media items by id and offset, prompt
// embeddings by their digest. The last string left in the first block of a run
// without a parent is the cache salt.
//
// vLLM 0.17 and 0.18 name media without an offset. These are mixed at offset 0, or
// taken for the salt where they stand alone in the first block: either way such
// blocks match no prompt, and a hit that is not seen only costs a prefill.
//
// Some engines say too little. vLLM up to 0.16 has no extra keys: blocks under a
// salt or with media look as if they had neither. SGLang never names an adapter or
// its extra_key. What the index finds there for requests that have these is a guess.
//
// SGLang's EAGLE mode sends pairs of tokens, each with the one after it. The first
// of each pair is the block's token. The engine also wants the token after a page
// to match, which a prompt's next page would have told: where a prompt departs
// exactly at the end of a page, one page more is found than the engine will reuse,
// and several hashes can mean one block.
//
// # Damage
//
// An event that can't be read is counted as damaged and left out, and its
// neighbours are read as long as its end can be found; else all that are left count
// as damaged. What a damaged event said is lost, so the source's state is in doubt
// until it is replayed or forgotten. Decode fails only where there is no batch.
//
// # Memory
//
// A Decoder belongs to one goroutine. All that a batch consists of lies in memory
// of the decoder and is valid until its next Decode; strings may be kept. Once it
// has grown to the size of the batches that come, nothing is allocated but new
// strings. A count that the rest of the payload can't hold is not believed, so
// memory is at most about sixteen times the payload; after a batch of unusual size
// it is given back. A payload has at most MaxBatch bytes, and a batch at most
// MaxEvents events; those beyond count as damaged. Nesting costs no stack.
//
// # Groups
//
// Hybrid models have several groups of layers, each with blocks of its own under
// the same hashes. Only one group tells how long a cached prefix is; Groups finds
// out which.
package kvevent
