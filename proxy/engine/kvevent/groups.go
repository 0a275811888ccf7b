package kvevent

import "math/bits"

// MaxGroups is how many KV cache groups of a source are told apart. Models have a
// handful; events of groups beyond are not applied.
const MaxGroups = 64

// prefixKinds are the kinds of attention whose blocks tell how long a cached
// prefix is: a block is there exactly as long as it can be hit.
var prefixKinds = map[string]bool{"full_attention": true, "mla_attention": true, "sink_full_attention": true}

// Groups finds out which of a source's KV cache groups is the main one: whose
// blocks say how long a prefix is cached. All groups name their blocks by the same
// hashes, so an event of another group must not be applied, least of all a removal.
//
// The main group is the lowest with a kind of full attention. vLLM 0.20 and 0.21
// number groups without saying their kind: as long as no kind is known, it is the
// lowest group whose stored tokens always filled its blocks; sliding windows leave
// holes sooner or later. Such a guess may turn out wrong, or a lower group come
// later; the main group then changes, at most a few times in a source's life.
//
// The zero value knows nothing. It is pure, and belongs to the source's goroutine.
type Groups struct {
	seen, prefix, other, sparse uint64 // a bit a group
	main                        int    // plus one; 0: none
}

// Judge learns from an event and says whether it is to be applied to the index.
// Where reset is true, what was applied before was another group's: forget all of
// it first. Spans that don't fill their blocks and blocks of odd sizes in the main
// group are the index's to judge; it has to know them for their removal.
func (g *Groups) Judge(e *Event) (apply, reset bool) {
	if e.Kind == Cleared {
		return true, false
	}
	if e.Remote || e.Group >= MaxGroups {
		return false, false
	}
	if e.Group < 0 {
		return e.SpecKind == "" || prefixKinds[e.SpecKind], false
	}
	before := g.main
	if e.Kind == Stored {
		g.learn(e)
	}
	return g.main == e.Group+1, before != 0 && g.main != before
}

// Main is the main group, -1 while there is none.
func (g *Groups) Main() int { return g.main - 1 }

// Forget is for a source that has restarted, perhaps with another model.
func (g *Groups) Forget() { *g = Groups{} }

// learn takes what a stored event says about its group.
func (g *Groups) learn(e *Event) {
	bit := uint64(1) << e.Group
	g.seen |= bit
	switch {
	case prefixKinds[e.SpecKind]:
		g.prefix, g.other = g.prefix|bit, g.other&^bit
	case e.SpecKind != "":
		g.prefix, g.other = g.prefix&^bit, g.other|bit
	case len(e.Stored.Tokens) > 0 && len(e.Stored.Tokens) != len(e.Stored.Hashes)*e.Stored.BlockSize:
		g.sparse |= bit
	}
	candidates := g.prefix
	if g.prefix|g.other == 0 {
		candidates = g.seen &^ g.sparse
	}
	g.main = 0
	if candidates != 0 {
		g.main = bits.TrailingZeros64(candidates) + 1
	}
}
