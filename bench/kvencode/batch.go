package kvencode

import "kvca/proxy/engine/kvevent"

// Batch is what one message says.
type Batch struct {
	Time    float64
	Rank    int
	HasRank bool
	Events  []Event
}

// Event is one change of what an engine holds, as the engine sees it.
type Event struct {
	Kind   kvevent.Kind
	Hashes []uint64
	// Parent, Tokens and what follows up to Media belong to stored blocks only.
	Parent    uint64
	HasParent bool
	Tokens    []uint32
	BlockSize int
	LoRA      string
	// Salt is written where the run has no parent.
	Salt  string
	Media []Media
	// Medium is empty where the engine names none.
	Medium string
	// Group is -1 where the engine has one group and does not number it.
	Group    int
	SpecKind string
	Remote   bool
	// Counts are how many copies of each removed hash are left; nil: not told.
	Counts []int
}

// Media is an item that overlaps a block.
type Media struct {
	// Block is which of the event's, from 0.
	Block int
	ID    string
	// Offset is where the item begins in tokens from the block's first, negative
	// if before.
	Offset int64
}

// Form is a way of writing events.
type Form struct {
	style style
	// stored is how many elements a stored event has, as an array.
	stored int
	// digests is whether hashes are written as digests of 32 bytes.
	digests bool
}

type style uint8

const (
	asMap style = iota
	asArray
	asSGLang
)

// VLLM is the form of vLLM 0.24 and later: maps.
func VLLM() Form { return Form{style: asMap} }

// VLLMArray is the form of vLLM up to 0.23, whose stored events have so many
// elements: 6 up to 0.10.1, 7 up to 0.13, 8 up to 0.16, 9 up to 0.19, 10 up to 0.21,
// 12 then. Shorter ones leave out what an event has more.
func VLLMArray(elements int) Form { return Form{style: asArray, stored: max(6, min(elements, 12))} }

// SGLang is the form of SGLang: arrays, signed hashes, the salt in a map.
func SGLang() Form { return Form{style: asSGLang, stored: 7} }

// Digests is the form with hashes written as whole digests, of which the last 8
// bytes are the hash.
func (f Form) Digests() Form {
	f.digests = true
	return f
}
