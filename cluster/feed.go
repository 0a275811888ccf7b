package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"kvca/cluster/wire"
	"kvca/state/kvindex"
)

// Feed is a source that this node reads: what feeds it tells Store, Remove, Reset and
// SetLive, as if it were the source itself, and the peers hear of it.
type Feed struct {
	x       *index
	place   *place
	backend string
	model   string
	agent   string // empty: the feed is this node's own
	source  *kvindex.Source

	// audience counts the peers that are told its blocks.
	audience atomic.Int32

	mu        sync.Mutex // guards what follows
	live      bool
	liveSince time.Duration // when live changed last
	problem   string
	ended     bool
	// What has changed since the last news. lost says that there was too much of it;
	// reset that the source held nothing before.
	batch     []byte
	cuts      []int // where the batch may be parted
	blockSize int
	reset     bool
	lost      bool
	listed    bool
}

// openFeed opens a source that is told. The caller holds index.mu.
func (x *index) openFeed(pl *place, backend, model, agent string) (*Feed, error) {
	origin, ok := x.origin(pl.id, model)
	if !ok {
		return nil, errNoBackend
	}
	source, err := x.x.Open(origin)
	if err != nil {
		return nil, err
	}
	f := &Feed{x: x, place: pl, backend: backend, model: model, agent: agent, source: source, liveSince: x.c.cfg.Now()}
	source.Watch(f.gather)
	x.feeds[pl.id] = f
	for _, p := range x.c.peers.all() {
		if p.connected() != nil {
			p.tells.add(f)
		}
	}
	nudge(x.c.stir)
	return f, nil
}

// closeFeed ends a source that is told. The caller holds index.mu.
func (x *index) closeFeed(f *Feed) {
	f.mu.Lock()
	f.ended, f.batch = true, nil
	f.mu.Unlock()
	f.source.Close()
	if x.feeds[f.place.id] != f {
		return
	}
	delete(x.feeds, f.place.id)
	for _, p := range x.c.peers.all() {
		p.tells.remove(f)
	}
	nudge(x.c.stir)
}

// Store takes blocks that the engine holds now. See kvindex.Source.
func (f *Feed) Store(e *kvindex.Stored) error { return f.source.Store(e) }

// Remove takes that the engine holds these blocks no more in a tier.
func (f *Feed) Remove(hashes []uint64, t kvindex.Tier) (unknown int) {
	return f.source.Remove(hashes, t)
}

// Reset forgets all: the engine's cache is empty, or what it holds is not known.
func (f *Feed) Reset() { f.source.Reset() }

// Source is the source itself, for its figures.
func (f *Feed) Source() *kvindex.Source { return f.source }

// Stats are the source's figures.
func (f *Feed) Stats() kvindex.SourceStats { return f.source.Stats() }

// SetLive says whether what is fed is what the engine holds now.
func (f *Feed) SetLive(on bool) {
	f.x.mu.Lock()
	defer f.x.mu.Unlock()
	if f.setLive(on) && f.agent == "" {
		f.x.reconsider(f.place)
	}
}

// setLive is SetLive with index.mu held; it says whether that is news.
func (f *Feed) setLive(on bool) bool {
	f.mu.Lock()
	news := !f.ended && f.live != on
	if news {
		f.live, f.liveSince = on, f.x.c.cfg.Now()
	}
	f.mu.Unlock()
	if news {
		f.source.SetLive(on)
		f.offerAgain()
	}
	return news
}

// SetProblem says in words why the feed does not work, empty if it does.
func (f *Feed) SetProblem(problem string) {
	f.x.mu.Lock()
	defer f.x.mu.Unlock()
	f.setProblem(problem)
}

func (f *Feed) setProblem(problem string) {
	f.mu.Lock()
	news := f.problem != problem
	f.problem = problem
	f.mu.Unlock()
	if news {
		f.offerAgain()
	}
}

// offerAgain has the peers told what the offer is now. The caller holds index.mu.
func (f *Feed) offerAgain() {
	if f.x.feeds[f.place.id] != f {
		return
	}
	for _, p := range f.x.c.peers.all() {
		p.tells.offerAgain(f)
	}
	nudge(f.x.c.stir)
}

// Close ends the source: what it held is forgotten, here and at the peers.
func (f *Feed) Close() {
	f.x.mu.Lock()
	defer f.x.mu.Unlock()
	f.x.closeFeed(f)
	if pl := f.place; pl.own == f {
		pl.own = nil
		f.x.reconsider(pl)
		f.x.tidy(pl)
	}
}

// serves is whether the feed is live; with grace also whether it was, or began, a
// moment ago.
func (f *Feed) serves(now time.Duration, grace bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live || grace && now-f.liveSince < ownGrace
}

func (f *Feed) offer() wire.SourceOffer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return wire.SourceOffer{ID: f.place.id, Live: f.live, Model: f.model, Problem: f.problem}
}

// sourceBytes bounds what gathers of one source between two news, as batchBytes does
// for locations: beyond, its peers get another copy.
const sourceBytes = 512 << 10

// gather is the source's watcher. It is called with the source's lock held.
func (f *Feed) gather(blockSize int, changes []kvindex.Held, reset bool) {
	if f.audience.Load() == 0 {
		return // whoever comes gets a copy, which this is in
	}
	f.mu.Lock()
	if reset {
		f.batch, f.cuts, f.lost, f.reset = f.batch[:0], nil, false, true
	}
	if f.blockSize = blockSize; len(f.batch)+maxHeld*len(changes) > sourceBytes {
		f.batch, f.cuts, f.lost = f.batch[:0], nil, true
	}
	if !f.lost {
		f.append(changes)
	}
	full := len(f.batch) >= flushBytes
	list := !f.listed && !f.ended
	f.listed = f.listed || list
	f.mu.Unlock()
	if list {
		f.x.news.add(f)
		nudge(f.x.c.stir)
	}
	if full {
		nudge(f.x.c.outbox.full)
	}
}

func (f *Feed) append(changes []kvindex.Held) {
	last := 0
	if n := len(f.cuts); n > 0 {
		last = f.cuts[n-1]
	}
	for i := range changes {
		if f.batch = wire.AppendHeld(f.batch, &changes[i]); len(f.batch)-last >= pageBytes {
			last = len(f.batch)
			f.cuts = append(f.cuts, last)
		}
	}
}

// maxHeld is the most that one block takes on the wire.
const maxHeld = 8 + 1 + 5 + 5

// feedNews is what has changed of a feed.
type feedNews struct {
	f         *Feed
	batch     []byte
	cuts      []int
	blockSize int
	reset     bool
	lost      bool
}

func (f *Feed) take() feedNews {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := feedNews{f: f, batch: f.batch, cuts: f.cuts, blockSize: f.blockSize, reset: f.reset, lost: f.lost}
	f.batch, f.cuts, f.reset, f.lost, f.listed = nil, nil, false, false, false
	return n
}

// news lists the feeds that have changed.
type news struct {
	mu   sync.Mutex
	list []*Feed
}

func (n *news) add(f *Feed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, f)
}

// takeNews gives what has changed of all feeds since it was called last.
func (x *index) takeNews() (all []feedNews) {
	if x == nil {
		return nil
	}
	n := &x.news
	n.mu.Lock()
	list := n.list
	n.list = nil
	n.mu.Unlock()
	for _, f := range list {
		all = append(all, f.take())
	}
	return all
}
