package agent

import (
	"kvca/cluster/wire"
	"kvca/state/kvindex"
)

// partBytes is how large a part grows before it goes.
const partBytes = 16 << 10

// offer is the offer that the node does not know yet, if it is another one than it
// knows.
func (m *Mirror) offer() (o wire.SourceOffer, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	due, m.offered = !m.offered, true
	return wire.SourceOffer{ID: m.id, Live: m.live, Problem: m.problem}, due
}

// begin starts a stream of that number: the node knows nothing.
func (m *Mirror) begin(epoch uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endStream()
	m.streaming = true
	m.part = wire.Part{ID: m.id, Epoch: epoch, Begin: true, Ack: true}
	for b := m.order.first; b != nil; b = b.after {
		if b.held() != 0 {
			m.queue.push(b)
		}
	}
}

// detach ends the stream; a new link is offered everything anew.
func (m *Mirror) detach() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endStream()
}

// forgetLink says that there is another node, which knows of no offer.
func (m *Mirror) forgetLink() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endStream()
	m.offered = false
}

func (m *Mirror) endStream() {
	m.streaming = false
	for b := m.queue.first; b != nil; b = m.queue.first {
		m.queue.remove(b)
	}
	for b := m.order.first; b != nil; {
		after := b.after
		b.told, b.renew = 0, false
		m.drop(b) // and parents, which come before it
		b = after
	}
}

// take makes the next part, as head and events; false where there is nothing to
// tell.
func (m *Mirror) take(events []byte) (part wire.Part, out []byte, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.streaming || m.queue.first == nil && !m.part.Begin && !m.part.Reset && m.part.Last {
		return wire.Part{}, events, false
	}
	base := len(events)
	for b := m.queue.first; b != nil && len(events)-base < partBytes; b = m.queue.first {
		events = m.tell(events, b)
	}
	events = m.flush(events)
	m.part.Seq++
	part = m.part
	// Last is said once, in the part that empties the queue first; from then on it
	// only remembers that.
	last := m.queue.first == nil
	part.Last = last && !m.part.Last
	m.part.Last = m.part.Last || last
	m.part.Begin, m.part.Reset = false, false
	return part, events, true
}

// tell tells the node of a block, and of the parents that it must know for it; the
// block stays in the queue where that is too much for one part.
func (m *Mirror) tell(events []byte, b *block) []byte {
	base := len(events)
	if add := b.held() &^ b.told; add != 0 || b.renew {
		m.path = m.path[:0]
		for up := b.up; up != nil && (up.told == 0 || up.renew); up = up.up {
			m.path = append(m.path, up)
		}
		for i := len(m.path) - 1; i >= 0; i-- {
			if len(events)-base >= partBytes {
				return events
			}
			up := m.path[i]
			events = m.unname(events, up)
			events = m.stored(events, up, anyTier(up.held()))
		}
		events = m.unname(events, b)
		for t := range kvindex.Tier(kvindex.Tiers) {
			if b.held()&^b.told&(1<<t) != 0 {
				events = m.stored(events, b, t)
			}
		}
	}
	m.queue.remove(b)
	for t := range kvindex.Tier(kvindex.Tiers) {
		if b.told&^b.held()&(1<<t) != 0 {
			events = m.removed(events, b, t)
		}
	}
	m.drop(b)
	return events
}

// unname takes back what the node was told of a block by name alone.
func (m *Mirror) unname(events []byte, b *block) []byte {
	if !b.renew {
		return events
	}
	b.renew = false
	for t := range kvindex.Tier(kvindex.Tiers) {
		if b.told&(1<<t) != 0 {
			events = m.removed(events, b, t)
		}
	}
	return events
}

// anyTier is the fastest tier of those, or that of a ghost.
func anyTier(tiers uint8) kvindex.Tier {
	for t := range kvindex.Tier(kvindex.Tiers) {
		if tiers&(1<<t) != 0 {
			return t
		}
	}
	return kvindex.GPU
}

// stored tells that a block is in a tier. What the node is told too much of (a
// ghost), or not enough, is told later.
func (m *Mirror) stored(events []byte, b *block, t kvindex.Tier) []byte {
	s := &m.run.Stored
	if m.run.Removed || !m.continues(b, t) {
		events = m.flush(events)
		m.run.Removed = false
		*s = kvindex.Stored{Hashes: s.Hashes, Tokens: s.Tokens, Tier: t, LoRA: b.lora, Salt: b.salt}
		if b.up != nil {
			s.HasParent, s.Parent = true, b.up.hash
		}
		s.BlockSize = int(b.size)
		if b.extras {
			s.Extras = make([]uint64, 0, 8)
		}
	}
	s.Hashes = append(s.Hashes, b.hash)
	s.Tokens = append(s.Tokens, b.tokens...)
	if b.extras {
		s.Extras = append(s.Extras, b.extra)
	}
	if b.told |= 1 << t; b.told != b.held() {
		m.queue.push(b)
	}
	return events
}

// continues is whether a block goes into the run that gathers.
func (m *Mirror) continues(b *block, t kvindex.Tier) bool {
	s := &m.run.Stored
	n := len(s.Hashes)
	if b.tokens == nil { // by name: their order says nothing
		return n > 0 && n < maxRun && s.Tier == t && s.BlockSize == int(b.size) && len(s.Tokens) == 0
	}
	return n > 0 && b.up != nil && b.up.hash == s.Hashes[n-1] && s.Tier == t && s.BlockSize == int(b.size) &&
		s.LoRA == b.lora && (s.Extras != nil) == b.extras && len(s.Tokens) > 0 &&
		n < maxRun && len(s.Tokens) < runTokens
}

// maxRun is how many blocks one event has at most, and runTokens after how many
// tokens it takes no more.
const (
	maxRun    = 512
	runTokens = 4096
)

func (m *Mirror) removed(events []byte, b *block, t kvindex.Tier) []byte {
	s := &m.run.Stored
	if !m.run.Removed || s.Tier != t || len(s.Hashes) >= maxRun {
		events = m.flush(events)
		m.run.Removed = true
		*s = kvindex.Stored{Hashes: s.Hashes, Tokens: s.Tokens, Tier: t}
	}
	s.Hashes = append(s.Hashes, b.hash)
	b.told &^= 1 << t
	return events
}

// flush ends the run that gathers.
func (m *Mirror) flush(events []byte) []byte {
	s := &m.run.Stored
	if len(s.Hashes) > 0 {
		events = wire.AppendEvent(events, &m.run)
	}
	s.Hashes, s.Tokens = s.Hashes[:0], s.Tokens[:0]
	return events
}
