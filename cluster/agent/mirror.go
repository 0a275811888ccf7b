package agent

import (
	"slices"
	"sync"
	"sync/atomic"

	"kvca/cluster/wire"
	"kvca/state/kvindex"
)

// maxTokens is the longest block that is known by more than its name.
const maxTokens = 1 << 14

// Mirror is what one rank of a backend holds: the sink of its feed. Its methods may
// be called by any goroutine.
type Mirror struct {
	backend string
	id      wire.SourceID
	memory  *memory
	wake    func() // there is something to tell

	mu      sync.Mutex
	blocks  map[uint64]*block
	order   order
	words   map[string]string // adapters and salts, one copy of each
	live    bool
	problem string
	stats   MirrorStats

	// What follows is how far the node was told.
	streaming bool
	offered   bool // the offer is as the node knows it
	part      wire.Part
	queue     queue
	run       wire.Event // gathers
	path      []*block   // scratch
}

// MirrorStats counts what a Mirror holds and could not take.
type MirrorStats struct {
	Blocks int
	// Orphans are events whose parent was unknown, Unknown removals of what was not
	// there, Full events that found no memory.
	Orphans, Unknown, Full uint64
	Resets                 uint64
}

// memory is what all Mirrors of an agent take together.
type memory struct {
	used atomic.Int64
	most int64
}

func (m *memory) take(n int64) bool {
	if m.used.Add(n) > m.most {
		m.used.Add(-n)
		return false
	}
	return true
}

func newMirror(backend string, id wire.SourceID, m *memory, wake func()) *Mirror {
	return &Mirror{
		backend: backend, id: id, memory: m, wake: wake,
		blocks: make(map[uint64]*block), words: make(map[string]string),
	}
}

// Store takes what the engine holds now. The errors are those of a source of the
// precise index: ErrOrphan where the parent is unknown, ErrFull where the memory
// does not do; then what comes after is not taken.
func (m *Mirror) Store(e *kvindex.Stored) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := known(e)
	var up *block
	if e.HasParent {
		up = m.blocks[e.Parent]
		if up != nil && up.held() == 0 {
			up = nil // a ghost
		}
		if known && (up == nil || up.tokens == nil) {
			m.stats.Orphans += uint64(len(e.Hashes))
			return kvindex.ErrOrphan
		}
	}
	for i, h := range e.Hashes {
		b := m.blocks[h]
		if b == nil {
			b = &block{hash: h, size: int32(min(max(e.BlockSize, 0), wire.MaxBlockSize))}
			if !m.add(b) {
				m.stats.Full += uint64(len(e.Hashes) - i)
				return kvindex.ErrFull
			}
		}
		if known && b.tokens == nil && !m.identify(b, up, e, i) {
			m.stats.Full += uint64(len(e.Hashes) - i)
			m.drop(b)
			return kvindex.ErrFull
		}
		m.count(b, min(e.Tier, kvindex.Remote), 1)
		up = b
	}
	return nil
}

// add takes a new block, by name; false where there is no memory for it.
func (m *Mirror) add(b *block) bool {
	if !m.memory.take(b.bytes()) {
		return false
	}
	m.blocks[b.hash] = b
	m.order.add(b)
	return true
}

// identify takes what the i-th block of a run is, the child of up; false where there
// is no memory for it. Until then it had no parent and was none.
func (m *Mirror) identify(b, up *block, e *kvindex.Stored, i int) bool {
	tokens := slices.Clone(e.Tokens[i*e.BlockSize : (i+1)*e.BlockSize])
	if !m.memory.take(4 * int64(cap(tokens))) {
		return false
	}
	b.tokens, b.size, b.lora = tokens, int32(e.BlockSize), m.word(e.LoRA)
	if b.up = up; up == nil {
		b.salt = m.word(e.Salt)
	} else {
		up.children++
		m.order.remove(b)
		m.order.add(b)
	}
	if b.extras = e.Extras != nil && i < len(e.Extras); b.extras {
		b.extra = e.Extras[i]
	}
	if b.told != 0 {
		b.renew = true
		m.queue.push(b)
	}
	return true
}

// known is whether a run says what its blocks are, in a form that can be told.
func known(e *kvindex.Stored) bool {
	return e.BlockSize > 0 && e.BlockSize <= maxTokens && len(e.Tokens) == len(e.Hashes)*e.BlockSize &&
		len(e.LoRA) <= wire.MaxWord && len(e.Salt) <= wire.MaxWord
}

// maxWords bounds the adapters and salts that are kept once; more are kept as often
// as they come.
const maxWords = 1 << 14

func (m *Mirror) word(s string) string {
	if s == "" || len(m.words) >= maxWords {
		return s
	}
	if w, ok := m.words[s]; ok {
		return w
	}
	m.words[s] = s
	return s
}

// count notes that a block was stored in a tier, or removed from it.
func (m *Mirror) count(b *block, t kvindex.Tier, by int) {
	before := b.held()
	b.counts[t] += uint32(by)
	now := b.held()
	switch {
	case before == 0 && now != 0:
		m.stats.Blocks++
	case before != 0 && now == 0:
		m.stats.Blocks--
	}
	if m.streaming && before != now {
		m.queue.push(b)
		m.wake()
	}
	m.drop(b)
}

// drop forgets a block that nobody needs, and with it parents that only it needed.
func (m *Mirror) drop(b *block) {
	for b != nil && b.idle() {
		up := b.up
		delete(m.blocks, b.hash)
		m.order.remove(b)
		m.queue.remove(b)
		m.memory.used.Add(-b.bytes())
		if b.up = nil; up != nil {
			up.children--
		}
		b = up
	}
}

// Remove takes that the engine holds these blocks no more in a tier, and returns how
// many of them were not known there.
func (m *Mirror) Remove(hashes []uint64, t kvindex.Tier) (unknown int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range hashes {
		b := m.blocks[h]
		if b == nil || b.counts[min(t, kvindex.Remote)] == 0 {
			unknown++
			continue
		}
		m.count(b, min(t, kvindex.Remote), -1)
	}
	m.stats.Unknown += uint64(unknown)
	return unknown
}

// Reset forgets all: the engine's cache is empty, or what it holds is not known.
func (m *Mirror) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.blocks {
		m.memory.used.Add(-b.bytes())
	}
	clear(m.words)
	m.blocks, m.order, m.queue = make(map[uint64]*block), order{}, queue{}
	m.stats.Blocks = 0
	m.stats.Resets++
	if m.streaming {
		m.part.Reset = true
		m.wake()
	}
}

// SetLive says whether what is told is what the engine holds now.
func (m *Mirror) SetLive(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live != on {
		m.live, m.offered = on, false
		m.wake()
	}
}

// SetProblem says in words why the feed does not work, empty if it does.
func (m *Mirror) SetProblem(problem string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.problem != problem {
		m.problem, m.offered = problem, false
		m.wake()
	}
}

// Stats are the counts now.
func (m *Mirror) Stats() MirrorStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}
