package readers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"kvca/proxy/engine/feed"
	"kvca/state/kvindex"
)

// reading is one backend that is read.
type reading struct {
	reader  *Reader
	backend Backend
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex // guards what follows
	problem string     // why there are no feeds
	feeds   []follower
}

// follower is a feed with its source.
type follower struct {
	*feed.Feed
	rank   int
	replay bool
	source Source
	heal   *heal // guarded by the reading's mu
}

// run reads until ctx ends: first where, then what.
func (g *reading) run(ctx context.Context) {
	log := g.reader.cfg.Logger.With("backend", g.backend.ID)
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		err := g.open(ctx)
		if err == nil {
			break
		}
		if g.settle(err.Error()) {
			log.Warn("kv cache events can't be read", "error", err)
		}
		if !pause(ctx, wait) {
			return
		}
	}
	g.settle("")
	g.follow(ctx)
}

// settle says what is wrong, and whether that is news.
func (g *reading) settle(problem string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.problem
	g.problem = problem
	return was != problem
}

// open makes a feed and a source for each rank, or none at all.
func (g *reading) open(ctx context.Context) error {
	specs, err := g.backend.specs(ctx)
	if err != nil {
		return err
	}
	var feeds []follower
	for _, spec := range specs {
		f, err := g.openOne(spec)
		if err != nil {
			closeAll(feeds)
			return err
		}
		feeds = append(feeds, f)
	}
	g.mu.Lock()
	g.feeds = feeds
	g.mu.Unlock()
	return nil
}

func (g *reading) openOne(spec feed.Spec) (follower, error) {
	source, err := g.reader.cfg.Open(g.backend.ID, spec.Rank)
	if err != nil {
		return follower{}, err
	}
	f, err := feed.New(feed.Config{
		Endpoint: spec.Endpoint, Bind: spec.Bind, Replay: spec.Replay, Topic: spec.Topic, Rank: spec.Rank, Sink: source,
		Logger: g.reader.cfg.Logger.With("backend", g.backend.ID),
	})
	if err != nil {
		source.Close()
		return follower{}, err
	}
	return follower{f, spec.Rank, spec.Replay != "", source, new(heal)}, nil
}

// follow runs the feeds until ctx ends; then what they told is forgotten.
func (g *reading) follow(ctx context.Context) {
	var work sync.WaitGroup
	for _, f := range g.feeds {
		work.Go(func() {
			if err := f.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				g.settle(err.Error())
				g.reader.cfg.Logger.Warn("kv cache events are not read any more", "backend", g.backend.ID, "rank", f.rank, "error", err)
			}
		})
	}
	work.Wait()
	<-ctx.Done()
	closeAll(g.feeds)
}

func closeAll(feeds []follower) {
	for _, f := range feeds {
		f.source.Close()
	}
}

// tell passes on what is wrong with each feed.
func (g *reading) tell() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.feeds {
		status, held := f.Status(), f.source.Stats()
		f.source.SetProblem(cmp.Or(g.problem, status.Problem, full(&held)))
	}
}

func (g *reading) expect() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.feeds {
		f.Expect()
	}
}

func (g *reading) void() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.feeds {
		if !f.replay {
			f.Void()
		}
	}
}

// Status is one rank of a backend that is read, or a backend of which it is not
// known yet where to read.
type Status struct {
	Backend string
	Rank    int
	// Problem says what an operator should look at, empty for nothing.
	Problem string
	// Feed is the event stream, Held what it came to.
	Feed feed.Status
	Held kvindex.SourceStats
}

// Status lists what is read, by backend and rank.
func (r *Reader) Status() []Status {
	r.mu.Lock()
	all := make([]*reading, 0, len(r.read))
	for _, one := range r.read {
		all = append(all, one)
	}
	r.mu.Unlock()
	var list []Status
	for _, one := range all {
		list = append(list, one.status()...)
	}
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Rank, b.Rank))
	})
	return list
}

func (g *reading) status() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.feeds) == 0 {
		return []Status{{Backend: g.backend.ID, Problem: cmp.Or(g.problem, "it is being found out where its events are"), Feed: feed.Status{State: "connecting"}}}
	}
	var list []Status
	for _, f := range g.feeds {
		s := Status{Backend: g.backend.ID, Rank: f.rank, Feed: f.Status(), Held: f.source.Stats()}
		s.Problem = cmp.Or(g.problem, s.Feed.Problem, full(&s.Held))
		list = append(list, s)
	}
	return list
}
