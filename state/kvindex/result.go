package kvindex

import (
	"kvca/state"
	"kvca/state/enginehash"
)

// Match is how much of a prompt a backend holds.
type Match struct {
	// Tokens are the leading tokens held, whole blocks of them, and never the last
	// token: engines compute at least that anew.
	Tokens int
	// Rank is the data-parallel rank that holds them.
	Rank int
	// BlockSize is how many tokens a block has there, 0 while nothing was stored.
	BlockSize int
	// TierTokens tells Tokens apart by the fastest tier that each block is in.
	TierTokens [Tiers]int
}

// Result is what is held of one prompt. The zero value is ready for Lookup, which
// may use it again and again and then allocates nothing; it belongs to one goroutine at a
// time.
type Result struct {
	view  *view
	slots []state.Slot
	rows  []row // by slot
	stamp uint32

	walk walk
	keys []uint64
	work keyer
	size int // tokens a block of the family that is looked at

	prompt enginehash.Prompt
}

// row is a Match in less memory; one of another stamp is of another lookup.
type row struct {
	stamp  uint32
	rank   int32
	tokens int32
	slower [Tiers - 1]int32
}

// Of is what a backend holds: that of its best rank. ok is false where the index
// has no live source of it, and so knows nothing.
func (r *Result) Of(s state.Slot) (m Match, ok bool) {
	if r.view == nil || !r.view.heard(s) {
		return Match{}, false
	}
	if int(s) < len(r.view.sizes) {
		m.BlockSize = int(r.view.sizes[s])
	}
	if int(s) >= len(r.rows) || r.rows[s].stamp != r.stamp {
		return m, true
	}
	row := &r.rows[s]
	m.Tokens, m.Rank = int(row.tokens), int(row.rank)
	m.TierTokens[GPU] = m.Tokens
	for t, n := range row.slower {
		m.TierTokens[t+1] = int(n)
		m.TierTokens[GPU] -= int(n)
	}
	return m, true
}

// Slots are the backends that hold anything of the prompt, in no order. The slice
// is valid until the next lookup.
func (r *Result) Slots() []state.Slot { return r.slots }

// begin empties the result for a lookup in a view.
func (r *Result) begin(v *view) {
	r.view, r.slots = v, r.slots[:0]
	if r.stamp++; r.stamp == 0 {
		clear(r.rows)
		r.stamp = 1
	}
}

// add notes what one source holds. The best of a backend counts: most tokens, then
// least of them in slow tiers, then the lowest rank.
func (r *Result) add(at seat, tokens int, slower [Tiers - 1]int32) {
	for int(at.slot) >= len(r.rows) {
		r.rows = append(r.rows, make([]row, int(at.slot)+1-len(r.rows))...)
	}
	old := &r.rows[at.slot]
	now := row{stamp: r.stamp, rank: at.rank, tokens: int32(tokens), slower: slower}
	if old.stamp != r.stamp {
		r.slots = append(r.slots, at.slot)
	} else if !now.better(old) {
		return
	}
	*old = now
}

func (r *row) better(o *row) bool {
	if r.tokens != o.tokens {
		return r.tokens > o.tokens
	}
	// The slowest tier decides first.
	for t := Tiers - 2; t >= 0; t-- {
		if r.slower[t] != o.slower[t] {
			return r.slower[t] < o.slower[t]
		}
	}
	return r.rank < o.rank
}

// enginePrompt is p as package enginehash takes it, with the media in what is given.
func enginePrompt(p *Prompt, media []enginehash.Media) *enginehash.Prompt {
	for _, m := range p.Media {
		media = append(media, enginehash.Media(m))
	}
	return &enginehash.Prompt{Tokens: p.Tokens, LoRA: p.LoRA, Salt: p.Salt, Media: media}
}
