// Package tokenizer turns text into token ids as a model's own tokenizer does: it
// reads a tokenizer.json of the byte-level BPE kind, which Qwen, Llama 3, DeepSeek,
// gpt-oss and most models of their time use.
//
// # Steps
//
// Added tokens (<|im_end|> and the like) are cut out of the text first, the longest
// at each place; those of the file that are "normalized" are looked for after
// normalization only. What is between them is normalized, split into words
// by the pre-tokenizers, and each word is merged, pair by pair in the order of the
// file's merges, into tokens.
//
// The split patterns of known models have splitters written by hand; any other runs
// in a regular expression engine that backtracks, within a time limit for each match.
//
// # What is refused
//
// Files whose result would not be exact are refused with what they are: models other
// than BPE, BPE over characters in place of bytes (byte_fallback, no ByteLevel step),
// dropout, prefixes and suffixes of subwords, normalizers and pre-tokenizers that are
// not written here.
//
// # Bounds
//
//   - A file has at most MaxFile bytes, and is read whole.
//   - Merging a word takes n log n steps however long it is, since a heap picks the
//     next pair.
//   - Words of up to 64 bytes are remembered: 32,768 of them, each in the one place
//     its hash names.
//   - Pieces between added tokens are remembered up to 64 MiB, so that the next turn of a
//     conversation tokenizes its last message only.
//
// A Tokenizer doesn't change once read, but for what it remembers: any number of
// goroutines may use it.
package tokenizer
