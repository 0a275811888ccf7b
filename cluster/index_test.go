package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/blockmap"
	"kvca/state/chain"
	"kvca/state/kvindex"
	"kvca/state/ledger"
	"kvca/state/ring"
)

func testIndex() *kvindex.Index {
	x, err := kvindex.New(kvindex.Config{Key: chain.DeriveKey("test"), MaxBytes: 64 << 20})
	if err != nil {
		panic(err)
	}
	return x
}

// truth is what one rank of a backend holds: runs of blocks, by their first hash.
type truth struct {
	backend string
	rank    int
	runs    map[uint64]*kvindex.Stored
}

func (e *truth) id() wire.SourceID { return wire.SourceID{Key: ring.Key(e.backend), Rank: e.rank} }

// fill feeds all that the engine holds.
func (e *truth) fill(f *Feed) {
	for _, first := range slices.Sorted(maps.Keys(e.runs)) {
		f.Store(e.runs[first])
	}
	f.SetLive(true)
}

// run makes a run of blocks of four tokens.
func run(rng *rand.Rand, blocks int) *kvindex.Stored {
	s := &kvindex.Stored{BlockSize: 4, Tier: kvindex.Tier(rng.IntN(3))}
	for range blocks {
		s.Hashes = append(s.Hashes, rng.Uint64())
		for range 4 {
			s.Tokens = append(s.Tokens, rng.Uint32N(200_000))
		}
	}
	return s
}

// change does something at the engine, and tells all feeds of it.
func (e *truth) change(rng *rand.Rand, blocks int, feeds []*Feed) {
	each := func(do func(f *Feed)) {
		for _, f := range feeds {
			do(f)
		}
	}
	firsts := slices.Sorted(maps.Keys(e.runs))
	switch dice := rng.IntN(20); {
	case dice == 0:
		clear(e.runs)
		each(func(f *Feed) { f.Reset() })
	case dice < 8 && len(firsts) > 0:
		s := e.runs[firsts[rng.IntN(len(firsts))]]
		delete(e.runs, s.Hashes[0])
		each(func(f *Feed) { f.Remove(s.Hashes, s.Tier) })
	default:
		s := run(rng, 1+rng.IntN(blocks))
		e.runs[s.Hashes[0]] = s
		each(func(f *Feed) { f.Store(s) })
	}
}

// knows is what a node knows of a source: nil where it has none that is live.
func (c *Cluster) knows(id wire.SourceID) map[uint64]kvindex.Held {
	c.index.mu.Lock()
	defer c.index.mu.Unlock()
	pl := c.index.places[id]
	var source *kvindex.Source
	live := false
	switch {
	case pl == nil:
	case pl.chosen != nil:
		source, live = pl.chosen.source, pl.chosen.live && pl.chosen.copied
	case pl.own != nil:
		source, live = pl.own.source, pl.own.live
	}
	if !live {
		return nil
	}
	held := make(map[uint64]kvindex.Held)
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		var page []kvindex.Held
		page, cursor = source.Page(cursor, 1000, nil)
		for _, h := range page {
			held[h.Key] = h
		}
	}
	return held
}

// expected is what a source that holds just this would know.
func (e *truth) expected() map[uint64]kvindex.Held {
	s, err := testIndex().Open(kvindex.Origin{Rank: e.rank})
	if err != nil {
		panic(err)
	}
	for _, r := range e.runs {
		s.Store(r)
	}
	held := make(map[uint64]kvindex.Held)
	page, _ := s.Page(0, 1<<20, nil)
	for _, h := range page {
		held[h.Key] = h
	}
	return held
}

// agrees is empty where the node knows what the engine holds, or nothing where
// nobody reads it.
func (e *truth) agrees(c *Cluster, read bool) string {
	got := c.knows(e.id())
	if !read {
		if got != nil {
			return fmt.Sprintf("%s knows %d blocks of %s/%d, which nobody reads", c.cfg.Node, len(got), e.backend, e.rank)
		}
		return ""
	}
	if got == nil {
		return fmt.Sprintf("%s has not heard %s/%d", c.cfg.Node, e.backend, e.rank)
	}
	if want := e.expected(); !maps.Equal(got, want) {
		return fmt.Sprintf("%s knows %d blocks of %s/%d, which holds %d", c.cfg.Node, len(got), e.backend, e.rank, len(want))
	}
	return e.found(c)
}

// found looks up one run of the engine's, as a request would.
func (e *truth) found(c *Cluster) string {
	slot := c.backends.of(e.id().Key).slot
	for _, r := range e.runs {
		var res kvindex.Result
		c.cfg.Index.Lookup(&kvindex.Prompt{Tokens: append(slices.Clone(r.Tokens), 1)}, &res)
		if m, ok := res.Of(slot); !ok || m.Tokens != len(r.Tokens) {
			return fmt.Sprintf("%s finds %d of %d tokens of %s/%d", c.cfg.Node, m.Tokens, len(r.Tokens), e.backend, e.rank)
		}
		break
	}
	return ""
}

// field is a cluster of Stepped nodes, whose frames wait in lanes that overtake each
// other as they like.
type field struct {
	t     *testing.T
	rng   *rand.Rand
	now   time.Duration
	lossy bool
	// refuse says which kinds of frames find no room; nil: none.
	refuse func(kind byte, body []byte) bool
	nodes  []*fieldNode
	lanes  map[laneID][]frameOf
	order  []laneID // what has frames, or had
	cuts   [][2]string
}

type laneID struct {
	from, to string
	lane     link.Lane
}

type frameOf struct {
	kind byte
	body []byte
}

type fieldNode struct {
	*Stepped
	f    *field
	name string
	boot uint64
	up   bool
}

// Carry implements Surroundings: at times there is no room.
func (n *fieldNode) Carry(to string, lane link.Lane, kind byte, body []byte) bool {
	f := n.f
	if f.lossy && f.rng.IntN(5) == 0 || f.refuse != nil && f.refuse(kind, body) {
		return false
	}
	id := laneID{n.name, to, lane}
	if _, ok := f.lanes[id]; !ok {
		f.order = append(f.order, id)
	}
	f.lanes[id] = append(f.lanes[id], frameOf{kind, body})
	return true
}

func (n *fieldNode) Wait(<-chan struct{}, time.Duration) bool { return false }
func (n *fieldNode) RTT(string) time.Duration                 { return time.Millisecond }
func (n *fieldNode) Cut(peer string)                          { n.f.cuts = append(n.f.cuts, [2]string{n.name, peer}) }

func newField(t *testing.T, seed uint64, nodes, backends int) *field {
	f := &field{t: t, rng: rand.New(rand.NewPCG(seed, 8)), now: time.Second, lanes: make(map[laneID][]frameOf)}
	for i := range nodes {
		f.nodes = append(f.nodes, &fieldNode{f: f, name: fmt.Sprintf("n%d", i)})
	}
	for _, n := range f.nodes {
		n.start(backends)
	}
	f.link()
	return f
}

func (n *fieldNode) start(backends int) {
	f := n.f
	m, err := blockmap.New(blockmap.Config{MaxBytes: 1 << 20, TTL: testTTL})
	if err != nil {
		f.t.Fatal(err)
	}
	n.boot++
	n.Stepped, err = NewStepped(Config{
		Node: n.name, Cluster: "test", Boot: n.boot, BlockSize: 512, HashKey: chain.DeriveKey("test"),
		Ledger: ledger.New(), Map: m, Index: testIndex(), Now: func() time.Duration { return f.now }, Rand: f.rng.Uint64,
	}, n)
	if err != nil {
		f.t.Fatal(err)
	}
	n.up = true
	for slot, b := range f.rng.Perm(backends) {
		n.Open(slotOf(slot), backendID(b))
	}
}

// link connects all who are not.
func (f *field) link() {
	for _, n := range f.nodes {
		var others []link.Hello
		for _, o := range f.nodes {
			if o != n && o.up && n.up {
				others = append(others, o.Hello())
			}
		}
		if n.up {
			n.Meet(others)
		}
	}
	for i, n := range f.nodes {
		for _, o := range f.nodes[:i] {
			if n.up && o.up && n.wires[o.name] == nil {
				n.Connect(o.Hello())
				o.Connect(n.Hello())
			}
		}
	}
}

// cut ends a link; what is on its way is lost.
func (f *field) cut(a, b *fieldNode) {
	for _, id := range f.order {
		if id.from == a.name && id.to == b.name || id.from == b.name && id.to == a.name {
			f.lanes[id] = nil
		}
	}
	if a.up {
		a.Disconnect(b.name)
	}
	if b.up {
		b.Disconnect(a.name)
	}
}

func (f *field) node(name string) *fieldNode {
	for _, n := range f.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// deliver hands over the next frame of some lane; false where there is none.
func (f *field) deliver() bool {
	for _, i := range f.rng.Perm(len(f.order)) {
		id := f.order[i]
		if list := f.lanes[id]; len(list) > 0 {
			f.lanes[id] = list[1:]
			if to := f.node(id.to); to.up {
				to.Deliver(id.from, list[0].kind, list[0].body)
			}
			return true
		}
	}
	return false
}

// pass lets time pass: beats, news, and some frames.
func (f *field) pass(d time.Duration, frames int) {
	for end := f.now + d; f.now < end; f.now += 5 * time.Millisecond {
		for _, n := range f.nodes {
			if !n.up {
				continue
			}
			for _, o := range f.nodes {
				n.Heard(o.name)
			}
			if f.now%BeatEvery == 0 {
				n.Beat()
			}
			if at, ok := n.NewsDue(); ok && at <= f.now {
				n.TellNews()
			}
		}
		for range frames {
			if !f.deliver() {
				break
			}
		}
		for _, c := range f.cuts {
			f.cut(f.node(c[0]), f.node(c[1]))
		}
		f.cuts = nil
	}
}
