package cluster

import (
	"context"
	"sync"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state"
	"kvca/state/blockmap"
	"kvca/state/ring"
)

// Comparing with peers: the one that may lack something sends a digest of what it
// has, the other answers with the locations of the buckets in which they differ.
const (
	// compareEvery is the time between two comparisons with some peer, give or
	// take a half.
	compareEvery = 10 * time.Second
	// againAfter is the time to the next comparison where one that had a cause has
	// found something, and again how often that is done: under load two maps are
	// never quite the same at the same moment, which is no cause.
	againAfter = time.Second
	again      = 3
	// pullTimeout ends a comparison that does not get on.
	pullTimeout = 5 * time.Second
	// routineLimit bounds the locations of a comparison without a cause.
	routineLimit = 1 << 14
	// pageBytes is how much one page has: what a reservation may wait behind.
	pageBytes = 12 << 10
	// window is how much may be sent beyond what is applied.
	window = 512 << 10
	// pageStep is how many locations are looked at in one hold of the map's lock.
	pageStep = 512
	// retryEvery is the time between two looks whether a page may be sent.
	retryEvery = 5 * time.Millisecond
	// fullShare is the share of the block map's bound above which nothing is
	// pulled: it would push out what is here.
	fullShare = 0.9
)

// pull is what this node fetches from one peer.
type pull struct {
	mu     sync.Mutex
	wanted bool // everything that differs
	again  int  // comparisons that may follow the one that was wanted
	due    time.Duration
	round  uint64 // 0 while none is under way
	moved  time.Duration
	bytes  uint64
	added  int
	// found is how many locations the last comparison found missing here, done
	// how many comparisons have come to their end.
	found int
	done  int
}

// want asks for a comparison as soon as possible.
func (u *pull) want() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.wanted, u.again = true, again
}

// begin starts over with a new link.
func (u *pull) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.round, u.wanted, u.again = 0, true, again
}

// complete is whether all that the peer had is here.
func (u *pull) complete() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.done > 0 && u.round == 0 && !u.wanted
}

// start is whether a comparison is to be made now, under which number, and for
// how many locations.
func (u *pull) start(now time.Duration, number uint64, routine bool) (limit int, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.round != 0 && now-u.moved < pullTimeout {
		return 0, false
	}
	switch {
	case u.wanted, u.due != 0 && now >= u.due:
	case routine:
		limit = routineLimit
	default:
		return 0, false
	}
	u.wanted, u.due, u.added, u.bytes = false, 0, 0, 0
	u.round, u.moved = number, now
	return limit, true
}

// compare begins the comparisons that are due.
func (c *Cluster) compare(now time.Duration) {
	routine := -1
	peers := c.linkedPeers()
	if now >= c.compareDue {
		c.compareDue = now + compareEvery/2 + time.Duration(c.cfg.Rand()%uint64(compareEvery))
		if len(peers) > 0 {
			routine = int(c.cfg.Rand() % uint64(len(peers)))
			// What of loads was lost on the way is told again by the way.
			c.retell(peers[routine])
		}
	}
	stats := c.cfg.Map.Stats()
	if float64(stats.Bytes) > fullShare*float64(stats.MaxBytes)*7/8 {
		return
	}
	digested := false
	for i, p := range peers {
		c.rounds++
		limit, ok := p.pull.start(now, c.rounds, i == routine)
		if !ok {
			continue
		}
		if !digested {
			c.cfg.Map.Digest(c.digest, now, c.digestible)
			digested = true
		}
		p.send(link.Bulk, wire.Digest, wire.AppendDigest(nil, c.rounds, limit, c.digest))
		c.metrics.comparisons.Inc()
	}
}

// linkedPeers are the peers that locations are shared with now.
func (c *Cluster) linkedPeers() []*peer {
	list := c.peers.all()
	n := 0
	for _, p := range list {
		if l := p.connected(); l != nil && c.shares(l) {
			list[n] = p
			n++
		}
	}
	return list[:n]
}

// digestible tells what of a slot's locations counts in a digest, and as what.
func (c *Cluster) digestible(s state.Slot) (key uint64, horizon time.Duration, ok bool) {
	e := c.backends.at(s)
	if e == nil {
		return 0, 0, false
	}
	return ring.Mix(e.key + e.generation.Load()), e.horizon(), true
}

func (c *Cluster) applyPage(p *peer, r *wire.Reader, run *wire.Run, size int) {
	round, now, added := r.Page(), c.cfg.Now(), 0
	for r.Rest() > 0 {
		r.Run(run)
		if !r.Bad() {
			added += c.applyRun(run, false, now)
		}
	}
	u := &p.pull
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.round != round {
		return
	}
	u.added += added
	u.moved = now
	u.bytes += uint64(size)
	c.metrics.repaired.Add(float64(added))
	p.send(link.Bulk, wire.PageAck, wire.AppendPageAck(nil, round, u.bytes))
}

func (c *Cluster) endPull(p *peer, r *wire.Reader) {
	round, buckets, locations, more := r.PageEnd()
	u := &p.pull
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.Bad() || u.round != round {
		return
	}
	u.round = 0
	u.found = u.added
	u.done++
	if !more && u.added > 0 && u.again > 0 {
		u.again--
		u.due = c.cfg.Now() + againAfter
	}
	c.metrics.divergence.WithLabelValues(p.name).Set(float64(u.found))
	c.log.Debug("compared", "peer", p.name, "buckets", buckets, "locations", locations, "missing", u.added)
	nudge(c.warmed)
}

// credit is how far a peer has applied the pages that it is sent.
type credit struct {
	mu    sync.Mutex
	round uint64
	bytes uint64
	moved chan struct{}
}

func (t *credit) hear(r *wire.Reader) {
	round, bytes := r.PageAck()
	t.mu.Lock()
	defer t.mu.Unlock()
	if round == t.round && bytes > t.bytes {
		t.bytes = bytes
		nudge(t.moved)
	}
}

func (t *credit) begin(round uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.round, t.bytes = round, 0
}

func (t *credit) applied() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}

// answerQuestions answers a peer's digests until ctx ends.
func (c *Cluster) answerQuestions(ctx context.Context, p *peer) {
	var theirs, ours blockmap.Digest
	for {
		m, ok := p.questions.take()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-p.questions.wake:
			}
			continue
		}
		c.answerDigest(ctx, p, m.body, &theirs, &ours)
	}
}

// answerDigest answers one digest; the digests given are scratch.
func (c *Cluster) answerDigest(ctx context.Context, p *peer, body []byte, theirs, ours *blockmap.Digest) {
	r := wire.NewReader(body)
	round, limit := r.Digest(theirs)
	if r.Bad() {
		c.malformed(p, wire.Digest)
		return
	}
	// What is not sent from here on is told by a gap.
	p.out.dirty.Store(false)
	c.cfg.Map.Digest(ours, c.cfg.Now(), c.digestible)
	buckets, n := ours.Diff(theirs)
	a := &answerer{ctx: ctx, c: c, p: p, round: round, limit: limit}
	if n > 0 {
		a.send(&buckets)
	}
	if ctx.Err() == nil && !a.failed {
		p.send(link.Bulk, wire.PageEnd, wire.AppendPageEnd(nil, round, n, a.locations, a.more))
	}
}

// answerer sends the pages of one comparison.
type answerer struct {
	ctx   context.Context
	c     *Cluster
	p     *peer
	round uint64
	limit int

	page      []byte
	run       wire.Run
	sent      uint64
	locations int
	more      bool // the limit has cut it
	failed    bool // the peer does not get on
}

func (a *answerer) send(buckets *blockmap.Buckets) {
	a.p.credits.begin(a.round)
	list := a.c.backends.all()
	for i := range list {
		// Another one first each time, or a limit would always cut the same.
		a.sendBackend(list[(uint64(i)+a.round)%uint64(len(list))], buckets)
		if a.stop() {
			break
		}
	}
	a.flush()
}

func (a *answerer) stop() bool {
	a.more = a.limit > 0 && a.locations >= a.limit
	return a.more || a.failed || a.ctx.Err() != nil
}

// sendBackend sends what is asked for of one backend, newest first.
func (a *answerer) sendBackend(e *entry, buckets *blockmap.Buckets) {
	var cursor blockmap.Cursor
	a.run = wire.Run{Key: e.key, Generation: e.generation.Load(), Hashes: a.run.Hashes[:0]}
	a.append() // an empty run tells the generation, whatever is held
	for done := false; !done && !a.stop(); {
		done = a.c.cfg.Map.Page(&cursor, e.slot, buckets, e.horizon(), a.c.cfg.Now(), pageStep, a.emit)
		a.endRun()
		if len(a.page) >= pageBytes {
			a.flush()
		}
	}
}

// emit takes one location: it continues the run where it is the child of the
// last, as old.
func (a *answerer) emit(parent, hash uint64, idle time.Duration) {
	// Whole seconds, rounded up: remaining time must not grow on its way.
	idle = (idle + time.Second - 1).Truncate(time.Second)
	a.locations++
	if n := len(a.run.Hashes); n > 0 {
		if a.run.Hashes[n-1] == parent && a.run.Idle == idle && n < wire.MaxRun {
			a.run.Hashes = append(a.run.Hashes, hash)
			return
		}
		a.endRun()
	}
	a.run.Parent, a.run.Idle = parent, idle
	a.run.Hashes = append(a.run.Hashes, hash)
}

func (a *answerer) endRun() {
	if len(a.run.Hashes) > 0 {
		a.append()
	}
}

func (a *answerer) append() {
	if len(a.page) == 0 {
		a.page = wire.AppendPage(a.page, a.round)
	}
	a.page = wire.AppendRun(a.page, &a.run)
	a.run.Hashes = a.run.Hashes[:0]
}

// flush sends the page, once the peer has applied enough of those before.
func (a *answerer) flush() {
	if len(a.page) == 0 || a.failed {
		return
	}
	end := a.c.cfg.Now() + pullTimeout
	for a.sent-min(a.p.credits.applied(), a.sent) > window || !a.p.send(link.Bulk, wire.Page, a.page) {
		w := a.c.waiter.wait(a.ctx, a.p.credits.moved, retryEvery)
		if w == cancelled || a.c.cfg.Now() >= end || a.p.connected() == nil {
			a.failed = true
			return
		}
	}
	a.sent += uint64(len(a.page))
	a.page = nil // the link may keep it
}
