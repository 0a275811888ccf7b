package kvindex

import (
	"fmt"

	"kvca/state"
)

// model is an index as its documentation says, with names in place of hashes: a
// block is called by all that it is the end of.
type model struct{ sources []*modelSource }

type modelSource struct {
	origin    Origin
	live      bool
	blockSize int
	known     map[uint64]*modelKnown
	held      map[string]uint8
	more      map[modelHolding]int // names beyond the first that stand for a block
	orphans   int
	unknown   int
}

type modelKnown struct {
	name   string // empty: can't be indexed
	copies [Tiers]int
}

type modelHolding struct {
	name string
	tier Tier
}

func newModelSource(o Origin) *modelSource {
	m := &modelSource{origin: o}
	m.reset()
	return m
}

func (m *modelSource) reset() {
	m.known, m.held, m.more = map[uint64]*modelKnown{}, map[string]uint8{}, map[modelHolding]int{}
	m.blockSize = 0
}

func modelRoot(blockSize int, lora, salt string) string {
	return fmt.Sprintf("%d/%q/%q", blockSize, lora, salt)
}

func modelName(before string, tokens []uint32, extra uint64) string {
	return fmt.Sprintf("%s/%d-%x", before, tokens, extra)
}

func (m *modelSource) store(e *Stored) error {
	n := len(e.Hashes)
	if len(e.Tokens) == 0 && e.BlockSize == 0 {
		for _, h := range e.Hashes {
			if k := m.known[h]; k != nil {
				m.add(k, e.Tier)
			}
		}
		return nil
	}
	err := error(nil)
	switch {
	case len(e.Tokens) != n*e.BlockSize:
		err = ErrSpan
	case m.blockSize != 0 && e.BlockSize != m.blockSize:
		err = ErrBlockSize
	}
	if err != nil {
		for _, h := range e.Hashes {
			if m.known[h] == nil {
				m.known[h] = &modelKnown{}
			}
			m.add(m.known[h], e.Tier)
		}
		return err
	}
	name := modelRoot(e.BlockSize, e.LoRA, e.Salt)
	if e.HasParent {
		k := m.known[e.Parent]
		if k == nil || k.name == "" {
			m.orphans += n
			return ErrOrphan
		}
		name = k.name
	}
	if n > 0 {
		m.blockSize = e.BlockSize
	}
	for i, h := range e.Hashes {
		k := m.known[h]
		if k == nil {
			k = &modelKnown{}
			m.known[h] = k
		}
		if k.name == "" {
			extra := uint64(0)
			if e.Extras != nil {
				extra = e.Extras[i]
			}
			k.name = modelName(name, e.Tokens[i*e.BlockSize:(i+1)*e.BlockSize], extra)
			for t, n := range k.copies { // it was known by name only
				if Tier(t) != e.Tier && n > 0 {
					m.hold(k, Tier(t))
				}
			}
			if k.copies[e.Tier] > 0 {
				m.hold(k, e.Tier)
				k.copies[e.Tier]++
				name = k.name
				continue
			}
		}
		name = k.name
		m.add(k, e.Tier)
	}
	return nil
}

// add adds a copy.
func (m *modelSource) add(k *modelKnown, t Tier) {
	switch {
	case k.name == "":
	case m.held[k.name]>>t&1 == 0:
		m.held[k.name] |= 1 << t
		k.copies[t] = 0 // what it had is forgotten
	case k.copies[t] == 0:
		m.more[modelHolding{k.name, t}]++
	}
	k.copies[t]++
}

func (m *modelSource) hold(k *modelKnown, t Tier) {
	if m.held[k.name]>>t&1 != 0 {
		m.more[modelHolding{k.name, t}]++
	}
	m.held[k.name] |= 1 << t
}

func (m *modelSource) remove(hashes []uint64, t Tier) (unknown int) {
	for _, h := range hashes {
		k := m.known[h]
		if k == nil || k.copies[t] == 0 {
			unknown++
			continue
		}
		k.copies[t]--
		if k.copies == [Tiers]int{} {
			delete(m.known, h)
		}
		if k.copies[t] > 0 || k.name == "" {
			continue
		}
		if h := (modelHolding{k.name, t}); m.more[h] > 0 {
			m.more[h]--
		} else {
			m.set(k.name, m.held[k.name]&^(1<<t))
		}
	}
	m.unknown += unknown
	return unknown
}

func (m *modelSource) set(name string, tiers uint8) {
	if m.held[name] = tiers; tiers == 0 {
		delete(m.held, name)
	}
}

// names are the blocks of a prompt.
func (m *modelSource) names(p *Prompt) (names []string) {
	if m.blockSize == 0 {
		return nil
	}
	name := modelRoot(m.blockSize, p.LoRA, p.Salt)
	for i := 0; (i+1)*m.blockSize <= len(p.Tokens); i++ {
		start, end := i*m.blockSize, (i+1)*m.blockSize
		extra := uint64(0)
		for _, media := range p.Media {
			if media.Offset < end && media.Offset+media.Length > start {
				extra = MixExtra(extra, media.ID, int64(media.Offset-start))
			}
		}
		name = modelName(name, p.Tokens[start:end], extra)
		names = append(names, name)
	}
	return names
}

func (m *modelSource) forget(p *Prompt, from int) {
	for i, name := range m.names(p) {
		if (i+1)*m.blockSize > from {
			delete(m.held, name)
			for t := range Tier(Tiers) {
				delete(m.more, modelHolding{name, t})
			}
		}
	}
}

func (m *modelSource) match(p *Prompt) (match Match) {
	match.Rank = m.origin.Rank
	for i, name := range m.names(p) {
		tiers := m.held[name]
		if tiers == 0 || (i+1)*m.blockSize >= len(p.Tokens) {
			return match
		}
		for t := range Tier(Tiers) {
			if tiers>>t&1 != 0 {
				match.TierTokens[t] += m.blockSize
				break
			}
		}
		match.Tokens += m.blockSize
	}
	return match
}

// lookup is the best match of each backend with a live source.
func (m *model) lookup(p *Prompt) map[state.Slot]Match {
	all := map[state.Slot]Match{}
	for _, s := range m.sources {
		if !s.live {
			continue
		}
		now := s.match(p)
		if now.Tokens == 0 {
			now = Match{}
		}
		if old, ok := all[s.origin.Slot]; !ok || modelBetter(&now, &old) {
			all[s.origin.Slot] = now
		}
	}
	return all
}

func modelBetter(a, b *Match) bool {
	if a.Tokens != b.Tokens {
		return a.Tokens > b.Tokens
	}
	for t := Tiers - 1; t > 0; t-- {
		if a.TierTokens[t] != b.TierTokens[t] {
			return a.TierTokens[t] < b.TierTokens[t]
		}
	}
	return a.Rank < b.Rank
}
