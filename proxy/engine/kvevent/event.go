package kvevent

import "kvca/state/kvindex"

// field is a field of an event, in whatever form.
type field uint8

const (
	fieldNone field = iota // passed over
	fieldTag
	fieldHashes
	fieldParent
	fieldTokens
	fieldBlockSize
	fieldLoRAID
	fieldMedium
	fieldLoRA
	fieldExtraKeys
	fieldGroup
	fieldSpecKind
	fieldLocality
	fieldCounts
)

var fieldNames = [...]string{
	fieldTag: "type", fieldHashes: "block_hashes", fieldParent: "parent_block_hash", fieldTokens: "token_ids",
	fieldBlockSize: "block_size", fieldLoRAID: "lora_id", fieldMedium: "medium", fieldLoRA: "lora_name",
	fieldExtraKeys: "extra_keys", fieldGroup: "group_idx", fieldSpecKind: "kv_cache_spec_kind",
	fieldLocality: "locality", fieldCounts: "remaining_copy_counts",
}

// positions are the fields of events that are arrays, the tag left out.
var positions = [...][]field{
	Stored: {
		fieldHashes, fieldParent, fieldTokens, fieldBlockSize, fieldLoRAID, fieldMedium, fieldLoRA,
		fieldExtraKeys, fieldGroup, fieldSpecKind, fieldNone, fieldLocality,
	},
	Removed: {fieldHashes, fieldMedium, fieldGroup, fieldLocality},
	Cleared: {},
}

// fieldOf is the field of a map's key. A switch on a converted string allocates
// nothing.
func fieldOf(key []byte) field {
	switch string(key) {
	case "type":
		return fieldTag
	case "block_hashes":
		return fieldHashes
	case "parent_block_hash":
		return fieldParent
	case "token_ids":
		return fieldTokens
	case "block_size":
		return fieldBlockSize
	case "lora_id":
		return fieldLoRAID
	case "medium":
		return fieldMedium
	case "lora_name":
		return fieldLoRA
	case "extra_keys":
		return fieldExtraKeys
	case "group_idx":
		return fieldGroup
	case "kv_cache_spec_kind":
		return fieldSpecKind
	case "locality":
		return fieldLocality
	case "remaining_copy_counts":
		return fieldCounts
	}
	return fieldNone
}

// event is an event while it is being read.
type event struct {
	kind       Kind
	hasTag     bool
	unknownTag bool
	broken     field // the first field that could not be read, or fieldNone
	isBroken   bool

	hashes, tokens, counts bool // seen: a field that comes twice is broken
	parent                 uint64
	hasParent              bool
	blockSize              int
	loraID                 int // 0 for none
	tier                   kvindex.Tier
	lora, salt             string
	extraKeys              []byte // unread, nil for none
	group                  int
	specKind               string
	remote                 bool
}

// outcome is what has become of an event.
type outcome uint8

const (
	whole outcome = iota
	unknown
	broken
)

func (e *event) outcome() outcome {
	switch {
	case e.unknownTag:
		return unknown
	case e.isBroken || !e.hasTag:
		return broken
	case e.kind != Cleared && !e.hashes:
		e.broken = fieldHashes
		return broken
	}
	return whole
}

func (e *event) fail(f field) {
	if !e.isBroken {
		e.isBroken, e.broken = true, f
	}
}

func (e *event) problem() string {
	switch {
	case !e.hasTag:
		return "has no tag: want an array or a map with the event's kind"
	case e.broken == fieldNone:
		return "(" + e.kind.String() + ") is malformed"
	}
	return "(" + e.kind.String() + ") has a missing or malformed " + fieldNames[e.broken]
}

// setTag takes the event's tag from a string.
func (e *event) setTag(tag []byte) {
	switch string(tag) {
	case "BlockStored":
		e.kind = Stored
	case "BlockRemoved":
		e.kind = Removed
	case "AllBlocksCleared":
		e.kind = Cleared
	default:
		e.unknownTag = true
	}
	e.hasTag = true
}
