package agent

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kvca/cluster/wire"
	"kvca/state/chain"
	"kvca/state/kvindex"
)

// failer is a test, or a property that is checked.
type failer interface {
	Fatalf(format string, args ...any)
}

// node is a node's end of a stream: what it was told lies in a source.
type node struct {
	source *kvindex.Source
	epoch  uint64
	seq    uint64
	event  wire.Event
}

func newSource(t failer) *kvindex.Source {
	x, err := kvindex.New(kvindex.Config{Key: chain.DeriveKey("test"), MaxBytes: 16 << 20})
	if err != nil {
		t.Fatalf("%v", err)
	}
	s, err := x.Open(kvindex.Origin{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

func holdings(s *kvindex.Source) map[uint64]kvindex.Held {
	held := make(map[uint64]kvindex.Held)
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		var page []kvindex.Held
		page, cursor = s.Page(cursor, 100, nil)
		for _, h := range page {
			held[h.Key] = h
		}
	}
	return held
}

// apply takes one part off the wire.
func (n *node) apply(t failer, part wire.Part, events []byte) {
	if part.Begin {
		n.source.Reset()
		n.epoch, n.seq = part.Epoch, 0
	}
	if part.Epoch != n.epoch || part.Seq != n.seq+1 {
		t.Fatalf("part %d of stream %d, want %d of %d", part.Seq, part.Epoch, n.seq+1, n.epoch)
	}
	if n.seq++; part.Reset {
		n.source.Reset()
	}
	for r := wire.NewReader(events); r.Rest() > 0; {
		if r.Event(&n.event); r.Bad() {
			t.Fatalf("an event can't be read")
		}
		if s := &n.event.Stored; n.event.Removed {
			if unknown := n.source.Remove(s.Hashes, s.Tier); unknown > 0 {
				t.Fatalf("%d blocks are removed that were not told", unknown)
			}
		} else if err := n.source.Store(s); err != nil && len(s.Tokens) > 0 {
			t.Fatalf("%d blocks: %v", len(s.Hashes), err)
		}
	}
}

// drain takes at most so many parts and says whether all is told.
func (n *node) drain(t failer, m *Mirror, parts int) bool {
	for range parts {
		part, events, ok := m.take(nil)
		if !ok {
			return true
		}
		n.apply(t, part, events)
	}
	return false
}

// engine makes up events as an engine would, and some that it would not.
type engine struct {
	*rapid.T
	hashes []uint64
}

func (e *engine) store() *kvindex.Stored {
	n := rapid.IntRange(1, 4).Draw(e.T, "blocks")
	s := &kvindex.Stored{BlockSize: 2, Tier: kvindex.Tier(rapid.IntRange(0, 2).Draw(e.T, "tier"))}
	if len(e.hashes) > 0 && rapid.IntRange(0, 9).Draw(e.T, "child") > 2 {
		s.HasParent, s.Parent = true, rapid.SampledFrom(e.hashes).Draw(e.T, "parent")
	} else {
		s.Salt = rapid.SampledFrom([]string{"", "a"}).Draw(e.T, "salt")
	}
	last := s.Parent
	for range n {
		// A hash names its prefix: here the parent's, and what is drawn.
		token := uint32(rapid.IntRange(0, 2).Draw(e.T, "token"))
		last = (last*31+uint64(token)+7)*2 + uint64(len(s.Salt))
		s.Hashes, s.Tokens = append(s.Hashes, last), append(s.Tokens, token, uint32(last))
	}
	if rapid.IntRange(0, 9).Draw(e.T, "nameless") == 0 {
		s.Tokens = nil
	}
	e.hashes = append(e.hashes, s.Hashes...)
	return s
}

// offload says by name alone that blocks that are held are in another tier too.
func (e *engine) offload(m *Mirror) *kvindex.Stored {
	s := &kvindex.Stored{Tier: kvindex.CPU}
	for _, h := range e.hashes {
		if b := m.blocks[h]; b != nil && b.held() != 0 && rapid.IntRange(0, 3).Draw(e.T, "offloaded") == 0 {
			s.Hashes = append(s.Hashes, h)
		}
	}
	return s
}

func (m *Mirror) hasGhost(hashes []uint64) bool {
	return slices.ContainsFunc(hashes, func(h uint64) bool { return m.blocks[h] != nil && m.blocks[h].held() == 0 })
}

// What a node was told is what it would know had it heard the engine itself, at
// whatever moments streams begin, break off and get on.
func TestNodeKnowsWhatItWouldHaveHeard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		direct := newSource(t)
		m := newMirror("b", wire.SourceID{Key: 1}, &memory{most: 1 << 30}, func() {})
		n := &node{source: newSource(t)}
		e := &engine{T: t}
		epoch := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 12).Draw(t, "step") {
			case 0, 1, 2, 3:
				s := e.store()
				if s.Tokens == nil && m.hasGhost(s.Hashes) {
					continue // a source has forgotten what they are, a mirror has not
				}
				a, b := direct.Store(s), m.Store(s)
				if errors.Is(a, kvindex.ErrOrphan) != errors.Is(b, kvindex.ErrOrphan) {
					t.Fatalf("the mirror says %v, a source %v", b, a)
				}
			case 4, 5, 6, 7:
				if len(e.hashes) > 0 {
					some := rapid.SliceOfN(rapid.SampledFrom(e.hashes), 1, 3).Draw(t, "removed")
					tier := kvindex.Tier(rapid.IntRange(0, 2).Draw(t, "tier"))
					direct.Remove(some, tier)
					m.Remove(some, tier)
				}
			case 8:
				if rapid.Bool().Draw(t, "reset") {
					direct.Reset()
					m.Reset()
				}
			case 9:
				epoch++
				m.begin(epoch)
			case 10:
				m.detach()
			case 11:
				s := e.offload(m)
				direct.Store(s)
				m.Store(s)
			case 12:
				n.drain(t, m, rapid.IntRange(1, 2).Draw(t, "parts"))
			}
		}
		if !m.streaming {
			m.begin(epoch + 1)
		}
		if !n.drain(t, m, 1000) {
			t.Fatal("there is no end of parts")
		}
		if got, want := holdings(n.source), holdings(direct); !maps.Equal(got, want) {
			t.Fatalf("the node knows %v, the engine holds %v", got, want)
		}
		checkMirror(t, m)
	})
}

// checkMirror looks whether nothing is left that nobody needs.
func checkMirror(t failer, m *Mirror) {
	bytes, held, listed := int64(0), 0, 0
	for _, b := range m.blocks {
		if bytes += b.bytes(); b.held() != 0 {
			held++
		}
		if b.idle() {
			t.Fatalf("block %d is left", b.hash)
		}
	}
	seen := make(map[*block]bool)
	for b := m.order.first; b != nil; b = b.after {
		if listed++; b.up != nil && !seen[b.up] {
			t.Fatalf("block %d comes before its parent", b.hash)
		}
		seen[b] = true
	}
	if held != m.stats.Blocks || listed != len(m.blocks) || bytes != m.memory.used.Load() {
		t.Fatalf("%d held, counted %d; %d listed of %d; %d bytes, counted %d", held, m.stats.Blocks, listed, len(m.blocks), bytes, m.memory.used.Load())
	}
}

func chainOf(n int) *kvindex.Stored {
	s := &kvindex.Stored{BlockSize: 16}
	for i := range n {
		s.Hashes = append(s.Hashes, uint64(i+1))
		for j := range 16 {
			s.Tokens = append(s.Tokens, uint32(100_000+i*16+j))
		}
	}
	return s
}

func TestLongChainIsToldInBoundedParts(t *testing.T) {
	m := newMirror("b", wire.SourceID{}, &memory{most: 1 << 30}, func() {})
	s := chainOf(60_000) // a prompt of a million tokens
	if err := m.Store(s); err != nil {
		t.Fatal(err)
	}
	m.Remove(s.Hashes[:59_999], kvindex.GPU) // its last block needs all others
	n := &node{source: newSource(t)}
	m.begin(1)
	for largest := 0; ; {
		part, events, ok := m.take(nil)
		if !ok {
			break
		}
		if largest = max(largest, len(events)); largest > 128<<10 {
			t.Fatalf("a part has %d bytes", largest)
		}
		n.apply(t, part, events)
	}
	if got := len(holdings(n.source)); got != 1 {
		t.Errorf("the node holds %d blocks, want the last one", got)
	}
}

func TestChangeThatIsUndoneIsNotTold(t *testing.T) {
	m := newMirror("b", wire.SourceID{}, &memory{most: 1 << 30}, func() {})
	m.begin(1)
	n := &node{source: newSource(t)}
	n.drain(t, m, 10)
	s := chainOf(10)
	m.Store(s)
	m.Remove(s.Hashes, kvindex.GPU)
	if _, _, ok := m.take(nil); ok || len(m.blocks) != 0 {
		t.Errorf("something is told, or %d blocks are left", len(m.blocks))
	}
}

func TestFullMemoryIsSaidAndGivenBack(t *testing.T) {
	m := newMirror("b", wire.SourceID{}, &memory{most: 40 * (blockBytes + 64)}, func() {})
	s := chainOf(100)
	if err := m.Store(s); !errors.Is(err, kvindex.ErrFull) || m.Stats().Blocks != 40 || m.Stats().Full != 60 {
		t.Fatalf("%v, %+v", err, m.Stats())
	}
	checkMirror(t, m)
	m.Reset()
	if err := m.Store(chainOf(40)); err != nil {
		t.Error(err)
	}
}

func TestBlocksOfTooLongASaltAreKnownByNameOnly(t *testing.T) {
	m := newMirror("b", wire.SourceID{}, &memory{most: 1 << 30}, func() {})
	s := chainOf(3)
	s.Salt = string(make([]byte, wire.MaxWord+1))
	if err := m.Store(s); err != nil {
		t.Fatal(err)
	}
	m.begin(1)
	n := &node{source: newSource(t)}
	n.drain(t, m, 10)
	if got := len(holdings(n.source)); got != 0 {
		t.Errorf("%d blocks are indexed under another salt than theirs", got)
	}
	if unknown := m.Remove(s.Hashes, kvindex.GPU); unknown != 0 {
		t.Errorf("%d removals are of unknown blocks", unknown)
	}
}

func BenchmarkMirror(b *testing.B) {
	m := newMirror("b", wire.SourceID{}, &memory{most: 1 << 40}, func() {})
	m.begin(1)
	s := chainOf(64)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j := range s.Hashes {
			s.Hashes[j] = uint64(i*64 + j + 1)
		}
		m.Store(s)
		for ok := true; ok; {
			_, _, ok = m.take(nil)
		}
		m.Remove(s.Hashes, kvindex.GPU)
	}
	b.ReportMetric(float64(b.N)*128/b.Elapsed().Seconds(), "changes/s")
}
