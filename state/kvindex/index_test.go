package kvindex

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kvca/state"
	"kvca/state/chain"
)

// checkIndex fails unless all shards are sound: tables, and blocks with a head
// first and no group twice or empty.
func checkIndex(t failer, x *Index) {
	t.Helper()
	owned := 0
	for i := range x.shards {
		s := &x.shards[i]
		var entries []moved[uint64]
		blocks, groups, holders := 0, map[uint64]bool{}, map[number]bool{}
		for place := range uint64(len(s.table.chunks)) << chunkBits {
			at := s.table.at(place)
			if at.hash() == 0 {
				continue
			}
			e := moved[uint64]{hash: at.hash(), val: at.val}
			if head := len(entries) == 0 || entries[len(entries)-1].hash != e.hash; head {
				blocks++
				clear(groups)
				clear(holders)
				if e.val&headBit == 0 || headTiers(e.val) == 0 {
					t.Fatalf("block %x begins with %x, which is no head", e.hash, e.val)
				}
				holders[headSource(e.val)] = true
			} else {
				if e.val&headBit != 0 || groupTiers(e.val) == 0 || e.val&groupSources == 0 || groups[e.val&^groupSources] {
					t.Fatalf("block %x has the group %x: empty, twice or a head", e.hash, e.val)
				}
				groups[e.val&^groupSources] = true
				for sources := e.val & groupSources; sources != 0; sources &= sources - 1 {
					n := member(groupOf(e.val), bits.TrailingZeros64(sources))
					if holders[n] {
						t.Fatalf("block %x has the holder %d twice", e.hash, n)
					}
					holders[n] = true
				}
			}
			entries = append(entries, e)
		}
		if blocks != s.blocks {
			t.Fatalf("shard %d counts %d blocks, has %d", i, s.blocks, blocks)
		}
		checkTable(t, &s.table, entries)
		owned += s.table.owned
	}
	bytes := int64(owned+len(x.blocks.spare)) * x.blocks.size()
	for _, s := range x.numbers.holders {
		if s != nil {
			bytes += int64(s.known.owned)*x.known.size() + int64(len(s.more))*holdingBytes
		}
	}
	bytes += int64(len(x.known.spare)) * x.known.size()
	if used := x.budget.used.Load(); used != bytes || used > x.budget.limit {
		t.Fatalf("%d bytes are counted, %d in use, %d the bound", used, bytes, x.budget.limit)
	}
}

// world is an index, its model, and a second index that is told what the watchers
// of the first one are.
type world struct {
	x, copied *Index
	m         model
	sources   []*Source
	copies    []*Source
}

func newIndex(t failer, bytes int64) *Index {
	t.Helper()
	x, err := New(Config{Key: chain.Key{K0: 1, K1: 2}, MaxBytes: bytes})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return x
}

func newWorld(t failer) *world {
	return &world{x: newIndex(t, 16<<20), copied: newIndex(t, 16<<20)}
}

func (w *world) open(t failer, o Origin) {
	s, err := w.x.Open(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	c, err := w.copied.Open(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.Watch(func(blockSize int, changes []Held, reset bool) {
		if reset {
			c.Reset()
		}
		c.Put(changes, blockSize)
	})
	w.sources, w.copies = append(w.sources, s), append(w.copies, c)
	w.m.sources = append(w.m.sources, newModelSource(o))
}

func (w *world) close(i int) {
	w.sources[i].Close()
	w.copies[i].Close()
	w.sources = slices.Delete(w.sources, i, i+1)
	w.copies = slices.Delete(w.copies, i, i+1)
	w.m.sources = slices.Delete(w.m.sources, i, i+1)
}

func drawTokens(t *rapid.T, n int) []uint32 {
	return rapid.SliceOfN(rapid.Uint32Range(0, 1), n, n).Draw(t, "tokens")
}

func drawPrompt(t *rapid.T) *Prompt {
	p := &Prompt{
		Tokens: drawTokens(t, rapid.IntRange(0, 12).Draw(t, "length")),
		LoRA:   rapid.SampledFrom([]string{"", "", "", "l"}).Draw(t, "lora"),
		Salt:   rapid.SampledFrom([]string{"", "", "", "s"}).Draw(t, "salt"),
	}
	if rapid.IntRange(0, 3).Draw(t, "media") == 0 {
		p.Media = []Media{{ID: "i", Offset: rapid.IntRange(0, 8).Draw(t, "offset"), Length: rapid.IntRange(1, 4).Draw(t, "items")}}
	}
	return p
}

// drawStored draws an event. A hash is mostly the same for the same block, as an
// engine's is, and sometimes another.
func drawStored(t *rapid.T, m *modelSource) *Stored {
	p := drawPrompt(t)
	size := rapid.SampledFrom([]int{2, 2, 2, 2, 2, 3, 1}).Draw(t, "size")
	if m.blockSize != 0 && rapid.IntRange(0, 7).Draw(t, "same") > 0 {
		size = m.blockSize
	}
	sizes := modelSource{blockSize: size}
	names := sizes.names(p)
	e := &Stored{
		BlockSize: size, LoRA: p.LoRA, Salt: p.Salt,
		Tier: rapid.SampledFrom([]Tier{GPU, GPU, GPU, CPU, Remote}).Draw(t, "tier"),
	}
	from := rapid.IntRange(0, len(names)).Draw(t, "from")
	if rapid.Bool().Draw(t, "whole") {
		from = 0
	}
	if from > 0 {
		e.HasParent, e.Parent = true, engineHash(t, names[from-1])
	}
	ex := extras{media: p.Media, blockSize: size}
	for i := range names {
		extra := ex.next()
		if i < from {
			continue
		}
		e.Hashes = append(e.Hashes, engineHash(t, names[i]))
		e.Tokens = append(e.Tokens, p.Tokens[i*size:(i+1)*size]...)
		e.Extras = append(e.Extras, extra)
	}
	switch rapid.IntRange(0, 9).Draw(t, "odd") {
	case 0:
		e.Tokens, e.BlockSize = nil, 0
	case 1:
		e.Tokens = append(e.Tokens, 1)
	}
	if p.Media == nil {
		e.Extras = nil
	}
	return e
}

func engineHash(t *rapid.T, name string) uint64 {
	h := uint64(0)
	for _, c := range []byte(name) {
		h = h*131 + uint64(c)
	}
	if rapid.IntRange(0, 7).Draw(t, "alias") == 0 {
		h++
	}
	return h
}

func (w *world) step(t *rapid.T) {
	i := rapid.IntRange(0, len(w.sources)-1).Draw(t, "source")
	s, m := w.sources[i], w.m.sources[i]
	switch op := rapid.IntRange(0, 40).Draw(t, "op"); {
	case op < 22:
		e := drawStored(t, m)
		if got, want := s.Store(e), m.store(e); got != want {
			t.Fatalf("Store(%+v) = %v, want %v", e, got, want)
		}
	case op < 34:
		hashes := drawHashes(t, m)
		tier := rapid.SampledFrom([]Tier{GPU, GPU, GPU, CPU, Remote}).Draw(t, "tier")
		if got, want := s.Remove(hashes, tier), m.remove(hashes, tier); got != want {
			t.Fatalf("Remove(%x) = %d, want %d", hashes, got, want)
		}
	case op < 36:
		s.Reset()
		m.reset()
	case op < 38:
		p, from := drawPrompt(t), rapid.IntRange(0, 12).Draw(t, "from")
		s.Forget(p, from)
		m.forget(p, from)
	case op < 39:
		m.live = !m.live
		s.SetLive(m.live)
		w.copies[i].SetLive(m.live)
	case len(w.sources) > 1:
		o := m.origin
		w.close(i)
		w.open(t, o)
	}
}

func drawHashes(t *rapid.T, m *modelSource) (hashes []uint64) {
	all := make([]uint64, 0, len(m.known)+1)
	for h := range m.known {
		all = append(all, h)
	}
	slices.Sort(all)
	return rapid.SliceOfN(rapid.SampledFrom(append(all, 12345)), 0, 4).Draw(t, "hashes")
}

// check compares lookups of both indexes with the model.
func (w *world) check(t *rapid.T, r *Result) {
	p := drawPrompt(t)
	want := w.m.lookup(p)
	for _, x := range []*Index{w.x, w.copied} {
		x.Lookup(p, r)
		var slots []state.Slot
		for s := range state.Slot(8) {
			got, ok := r.Of(s)
			got.BlockSize = 0 // the model does not say
			match, heard := want[s]
			if ok != heard || ok != x.Heard(s) || got != match {
				t.Fatalf("slot %d: got %+v, %v, want %+v, %v of %+v", s, got, ok, match, heard, p)
			}
			if match.Tokens > 0 {
				slots = append(slots, s)
			}
		}
		got := slices.Clone(r.Slots())
		slices.Sort(got)
		if !slices.Equal(got, slots) {
			t.Fatalf("Slots() = %v, want %v", got, slots)
		}
	}
}

func TestIndexIsWhatItsModelIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, r := newWorld(t), Result{}
		// Numbers begin a few before a group's end, so that there are more groups than one.
		used := uint64(1)<<rapid.SampledFrom([]int{0, 30, groupSize - 3}).Draw(t, "used") - 1
		w.x.numbers.taken[0], w.copied.numbers.taken[0] = used, used
		for i := range rapid.IntRange(1, 30).Draw(t, "sources") {
			w.open(t, Origin{Slot: state.Slot(i % 7), Rank: i / 7, Model: fmt.Sprint("m", i%2)})
			if rapid.IntRange(0, 3).Draw(t, "live") > 0 {
				w.sources[i].SetLive(true)
				w.copies[i].SetLive(true)
				w.m.sources[i].live = true
			}
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			w.step(t)
			w.check(t, &r)
		}
		checkIndex(t, w.x)
		checkIndex(t, w.copied)
		w.checkStats(t)
		w.checkPages(t)
		w.checkList(t)
	})
}

func (w *world) checkStats(t failer) {
	entries := 0
	for i, s := range w.sources {
		m, st := w.m.sources[i], s.Stats()
		entries += len(m.held)
		if st.Blocks != len(m.held) || st.Orphans != uint64(m.orphans) || st.Unknown != uint64(m.unknown) || st.BlockSize != m.blockSize {
			t.Fatalf("Stats() = %+v, want %d blocks, %d orphans, %d unknown", st, len(m.held), m.orphans, m.unknown)
		}
	}
	if st := w.x.Stats(); st.Entries != entries || st.Sources != len(w.sources) {
		t.Fatalf("Stats() = %+v, want %d entries, %d sources", st, entries, len(w.sources))
	}
}

// checkPages compares what a source's pages say with what the copy's say, which
// are taken another way.
func (w *world) checkPages(t failer) {
	for i := range w.sources {
		got, want := pages(w.sources[i]), pages(w.copies[i])
		if len(want) != len(w.m.sources[i].held) || len(got) != len(want) {
			t.Fatalf("%d keys by hash, %d by key, want %d", len(got), len(want), len(w.m.sources[i].held))
		}
		for key, h := range want {
			if got[key].Tiers != h.Tiers {
				t.Fatalf("key %x: %+v by hash, %+v by key", key, got[key], h)
			}
		}
	}
}

func pages(s *Source) map[uint64]Held {
	all := map[uint64]Held{}
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		var page []Held
		page, cursor = s.Page(cursor, 3, nil)
		for _, h := range page {
			all[h.Key] = h
		}
	}
	return all
}

func (w *world) checkList(t failer) {
	listed, seen := 0, map[uint64]bool{}
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		var page []Block
		page, cursor = w.x.List(Filter{}, cursor, 3, nil)
		for _, b := range page {
			if seen[b.Key] {
				t.Fatalf("key %x is listed twice", b.Key)
			}
			seen[b.Key] = true
			listed += len(b.Holders)
		}
	}
	if want := w.x.Stats().Entries; listed != want {
		t.Fatalf("%d entries are listed, want %d", listed, want)
	}
}

// What an engine calls its blocks is told apart by all 64 bits.
func TestEngineHashesKeepAllTheirBits(t *testing.T) {
	x, err := New(Config{Key: chain.Key{K0: 1, K1: 2}, MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var low, high uint64
	for i := range uint64(64) {
		h := x.mix(i * 0x9e3779b97f4a7c15)
		low, high = low|h&0xffffffff, high|h>>32
	}
	if low != 0xffffffff || high != 0xffffffff {
		t.Errorf("of 64 mixed hashes some bits are never set: %#x %#x", high, low)
	}
}
