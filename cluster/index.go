package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/kvindex"
	"kvca/state/ring"
)

// index shares the precise index. Of each source (what one rank of a backend holds)
// somebody is the teller: a node that reads it, by a feed of its own or from an
// agent. It offers the source to its peers; one that does not read it itself asks
// one of those that offer it, and is told.
//
// The lock order is index.mu, then the lock of a telling or a hearing, then the
// sources' own, then Feed.mu and news.mu.
type index struct {
	c      *Cluster
	x      *kvindex.Index
	epochs atomic.Uint64
	news   news

	mu     sync.Mutex
	feeds  map[wire.SourceID]*Feed // what this node tells
	places map[wire.SourceID]*place
	agents map[*link.Peer]*agentLink
	births uint64 // of agents' offers
	said   map[string]time.Duration
}

// place is a source as this node knows it: who reads it, and from whom this node
// has it.
type place struct {
	id wire.SourceID
	// own is this node's feed.
	own    *Feed
	offers []*offer
	chosen *offer
}

// offer is what a peer or an agent says that it reads.
type offer struct {
	place *place
	peer  *peer      // nil: an agent's
	agent *agentLink // nil: a peer's
	born  uint64     // agents' offers: the newer comes first
	hearing

	// What follows is guarded by index.mu.
	live           bool
	model, problem string
	unwant         bool // who offers it is to be told that it is not wanted
}

func (o *offer) from() string {
	if o.agent != nil {
		return o.agent.name
	}
	return o.peer.name
}

// send sends a frame to whoever offers.
func (o *offer) send(lane link.Lane, kind byte, body []byte) bool {
	if o.agent != nil {
		return o.agent.link.Send(lane, kind, body)
	}
	return o.peer.send(lane, kind, body)
}

func newIndex(c *Cluster) *index {
	if c.cfg.Index == nil {
		return nil
	}
	return &index{
		c: c, x: c.cfg.Index, feeds: make(map[wire.SourceID]*Feed), places: make(map[wire.SourceID]*place),
		agents: make(map[*link.Peer]*agentLink), said: make(map[string]time.Duration),
	}
}

// ownGrace is how long a feed of this node's may be down until a peer is asked for the
// source.
const ownGrace = 2 * time.Second

// Errors of Feed.
var (
	errNoIndex   = errors.New("this node has no precise index")
	errReadYet   = errors.New("it is read here already")
	errNoBackend = errors.New("this node does not know the backend")
)

// Feed opens a source that this node reads, to be fed, and tells the peers that want
// it. The backend must be open. It ends with Feed.Close, and when the backend is
// closed; then what it is fed counts nothing, and another is to be opened when the
// backend is back.
func (c *Cluster) Feed(backend string, rank int, model string) (*Feed, error) {
	fault := func(err error) (*Feed, error) {
		return nil, fmt.Errorf("cluster: feed of backend %s rank %d: %w", backend, rank, err)
	}
	x := c.index
	if x == nil {
		return fault(errNoIndex)
	}
	if rank < 0 || rank > wire.MaxRank {
		return fault(fmt.Errorf("want a rank of 0 to %d", wire.MaxRank))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	id := wire.SourceID{Key: ring.Key(backend), Rank: rank}
	if pl := x.places[id]; pl != nil && pl.own != nil {
		return fault(errReadYet)
	}
	pl := x.place(id)
	if pl.chosen != nil && pl.chosen.agent != nil {
		x.drop(pl) // one source is told by one of the two
	}
	f, err := x.openFeed(pl, backend, model, "")
	if err != nil {
		x.reconsider(pl)
		x.tidy(pl)
		return fault(err)
	}
	pl.own = f
	x.reconsider(pl)
	return f, nil
}

// origin says who a source of the place is; false where the backend is not open.
func (x *index) origin(id wire.SourceID, model string) (kvindex.Origin, bool) {
	e := x.c.backends.of(id.Key)
	if e == nil {
		return kvindex.Origin{}, false
	}
	o := kvindex.Origin{Slot: e.slot, Rank: id.Rank, Model: model}
	if x.c.cfg.Named != nil {
		o.Named, o.BlockSize = x.c.cfg.Named(e.id)
	}
	return o, true
}

// place gives the place of a source, made if need be. The caller holds mu, as for
// all that follows.
func (x *index) place(id wire.SourceID) *place {
	pl := x.places[id]
	if pl == nil {
		pl = &place{id: id}
		x.places[id] = pl
	}
	return pl
}

// tidy drops a place that nobody reads.
func (x *index) tidy(pl *place) {
	if pl.own == nil && len(pl.offers) == 0 && pl.chosen == nil {
		delete(x.places, pl.id)
	}
}

// withdraw takes an offer away.
func (x *index) withdraw(o *offer) {
	pl := o.place
	pl.offers = slices.DeleteFunc(pl.offers, func(other *offer) bool { return other == o })
	o.unwant = false
	x.reconsider(pl)
	x.tidy(pl)
}

// reconsider chooses from whom this node has a source, after anything that counts
// for that has changed.
func (x *index) reconsider(pl *place) {
	best := x.best(pl)
	if best == pl.chosen {
		if best != nil {
			best.showLive(best.live)
		}
		return
	}
	if old := pl.chosen; old != nil {
		x.drop(pl)
		if old.agent != nil && best != nil && best.agent != nil {
			x.c.log.Warn("another agent describes the backend: the newer one counts", "backend", x.backend(pl.id),
				"rank", pl.id.Rank, "agent", best.from(), "instead_of", old.from())
		}
	}
	if best != nil {
		x.choose(pl, best)
	}
}

func (x *index) backend(id wire.SourceID) string {
	if e := x.c.backends.of(id.Key); e != nil {
		return e.id
	}
	return fmt.Sprintf("%016x", id.Key)
}

// best is whom the source is to be had from, nil for nobody: agents before peers,
// the newest first, peers by name; but who is live before all who are not.
func (x *index) best(pl *place) *offer {
	if x.c.backends.of(pl.id.Key) == nil {
		return nil
	}
	// A feed that has just begun will be live soon: nobody is asked meanwhile, and
	// who was asked before is heard until then.
	own := pl.own != nil && pl.own.serves(x.c.cfg.Now(), pl.chosen == nil)
	var best *offer
	for _, o := range pl.offers {
		if own || o.agent != nil && pl.own != nil || o.peer != nil && o.peer.connected() == nil {
			continue
		}
		if best == nil || better(o, best) {
			best = o
		}
	}
	return best
}

func better(a, b *offer) bool {
	switch {
	case a.live != b.live:
		return a.live
	case (a.agent != nil) != (b.agent != nil):
		return a.agent != nil
	case a.agent != nil:
		return a.born > b.born
	}
	return strings.Compare(a.peer.name, b.peer.name) < 0
}

// choose begins to have a source from someone.
func (x *index) choose(pl *place, o *offer) {
	origin, ok := x.origin(pl.id, o.model)
	if !ok {
		return
	}
	if o.agent != nil {
		f, err := x.openFeed(pl, x.backend(pl.id), o.model, o.agent.name)
		if err != nil {
			x.say("open", "a source of the precise index is not opened", err)
			return
		}
		o.begin(f.source, f)
	} else {
		source, err := x.x.Open(origin)
		if err != nil {
			x.say("open", "a source of the precise index is not opened", err)
			return
		}
		o.begin(source, nil)
	}
	pl.chosen = o
	o.unwant = false
	o.ask(x.c.cfg.Now())
}

// drop ends having a source from whom it was chosen to come.
func (x *index) drop(pl *place) {
	o := pl.chosen
	pl.chosen = nil
	if f := o.end(); f != nil {
		x.closeFeed(f)
	}
	o.unwant = !o.send(link.Deltas, wire.KVWant, wire.AppendWant(nil, pl.id, false))
}

// opened and closed follow the backend of that key. closed is called when its slot is
// its own no more, and before it is another's.
func (x *index) opened(key uint64) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, pl := range x.places {
		if id.Key == key {
			x.reconsider(pl)
		}
	}
}

func (x *index) closed(key uint64) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, pl := range x.places {
		if id.Key != key {
			continue
		}
		if pl.own != nil {
			x.closeFeed(pl.own)
			pl.own = nil
		}
		x.reconsider(pl)
		x.tidy(pl)
	}
}

// tend does what is due by time: what could not be sent, and what is not answered.
func (x *index) tend(now time.Duration) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, pl := range x.places {
		if pl.own != nil || pl.chosen == nil && len(pl.offers) > 0 {
			x.reconsider(pl)
		}
		if pl.chosen != nil {
			pl.chosen.tend(now)
		}
		for _, o := range pl.offers {
			if o.unwant && o != pl.chosen {
				o.unwant = !o.send(link.Deltas, wire.KVWant, wire.AppendWant(nil, pl.id, false))
			}
		}
	}
	for _, p := range x.c.peers.all() {
		if p.tells.owes() {
			nudge(x.c.stir)
		}
	}
	x.checkAgents()
}

// sayEvery is the time between two lines of one matter.
const sayEvery = time.Minute

// say logs once in a while; matters are of a closed set, with names of credentials
// and configured backends in them.
func (x *index) say(matter, message string, err error) {
	now := x.c.cfg.Now()
	if at, ok := x.said[matter]; ok && now-at < sayEvery {
		return
	}
	if len(x.said) >= maxSaid {
		clear(x.said)
	}
	x.said[matter] = now
	x.c.log.Warn(message, "error", err)
}

const maxSaid = 1024
