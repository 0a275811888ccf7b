package kvindex

// Stored says that a source holds blocks now: a run of them, each the child of the
// one before. It is what an event means whatever engine sent it; its slices belong
// to the caller and are read during the call only.
type Stored struct {
	// Hashes are the engine's own names of the blocks, which mean nothing outside
	// their source.
	Hashes []uint64
	// Parent is the engine's name of the block before the first; without one the
	// run begins at the prompt's first token.
	Parent    uint64
	HasParent bool
	// Tokens are the ids of the blocks, len(Hashes) * BlockSize of them; none
	// where the event does not say (an offloading connector's, or an engine's that
	// is configured so).
	Tokens []uint32
	// BlockSize is how many tokens a block has; 0 where the event does not say.
	BlockSize int
	Tier      Tier
	// LoRA is the adapter's name, empty for the base model.
	LoRA string
	// Salt is the cache salt of a run that begins at the first token; that of any
	// other run is its parent's.
	Salt string
	// Extras has one digest a block of what else its identity depends on (media,
	// prompt embeddings; see MixExtra), 0 for nothing; nil for none at all.
	Extras []uint64
}

// MixExtra adds a media item to a block's digest: its identifier, and where it
// begins in tokens from the block's first, negative if before. The digest of a
// block that overlaps several is mixed in their order, from 0. It is never 0 after.
func MixExtra(digest uint64, id string, offset int64) uint64 {
	h := digest ^ 0x9e3779b97f4a7c15
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 0x100000001b3
		h ^= h >> 29
	}
	h = (h ^ uint64(offset)) * 0xbf58476d1ce4e5b9
	h ^= h >> 32
	return h | 1
}

// Prompt is a request as an engine sees it: what lookups ask for.
type Prompt struct {
	Tokens []uint32
	LoRA   string
	Salt   string
	// Media are the items among the tokens, in order.
	Media []Media
}

// Media is an item (an image, a piece of audio) whose placeholder takes Length
// tokens from Offset on.
type Media struct {
	ID             string
	Offset, Length int
}

// Held is one block at one source as it travels between nodes: the key is the same
// on all nodes of a cluster.
type Held struct {
	Key uint64
	// Tiers has the bit 1<<t for each tier t that holds it; 0 means gone.
	Tiers uint8
	// Sample are the block's first two tokens, for people.
	Sample [2]uint32
}
