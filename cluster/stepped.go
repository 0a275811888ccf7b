package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/member"
	"kvca/cluster/wire"
	"kvca/state/blockmap"
)

// Surroundings are what a Stepped node lives in.
type Surroundings interface {
	// Carry takes a frame for a peer that is connected. The body is the taker's.
	// False: it was not taken, as where a lane's bound is reached.
	Carry(to string, lane link.Lane, kind byte, body []byte) bool
	// Wait lets time pass until signal has an element, which it takes, or limit is
	// over (false). Meanwhile the node's other methods may be called.
	Wait(signal <-chan struct{}, limit time.Duration) bool
	// RTT is the time of a way to a peer and back.
	RTT(peer string) time.Duration
	// Cut is told that the node closes its link to a peer; Disconnect follows, at
	// both ends.
	Cut(peer string)
}

// Stepped is a node of a cluster without goroutines, clock, sockets or
// membership: its caller says what happens and when. It is the same node
// otherwise, so that many of them can be simulated, much faster than time passes
// and always the same way.
//
// One goroutine at a time may be inside a Stepped node. What waits there (Reserve
// of its Loads, Answer) does so in Surroundings.Wait.
type Stepped struct {
	*Cluster
	around Surroundings
	wires  map[string]*steppedLink
	joined chan struct{}
	live   []member.Member
	table  member.Table // of facts
	beats  uint64
	// due is when news is told next, 0 while there is none.
	due  time.Duration
	told time.Duration

	run          wire.Run // scratch
	theirs, ours blockmap.Digest
}

// BeatEvery is the time between two beats.
const BeatEvery = beatEvery

// NewStepped makes a node that lives in around. Of the configuration, sockets,
// keys and the fleet are not used: backends are told by Open and Close.
func NewStepped(cfg Config, around Surroundings) (*Stepped, error) {
	if err := cfg.validateCore(); err != nil {
		return nil, err
	}
	s := &Stepped{
		around: around, wires: make(map[string]*steppedLink), joined: make(chan struct{}),
	}
	close(s.joined)
	s.Cluster = newCluster(cfg)
	s.members, s.links, s.waiter = steppedMembership{s}, steppedLinkage{}, steppedWaiter{around}
	return s, nil
}

// Hello is what this node says of itself to a new link.
func (s *Stepped) Hello() link.Hello { return s.hello() }

// Meet tells the node which members live, itself left out.
func (s *Stepped) Meet(peers []link.Hello) {
	s.live = s.live[:0]
	for _, h := range peers {
		s.live = append(s.live, member.Member{
			Name: h.Node, State: member.Alive,
			Meta: member.Meta{Boot: h.Boot, Cluster: h.Cluster, BlockSize: h.BlockSize, KeyCheck: h.KeyCheck, MinProtocol: minProtocol, MaxProtocol: maxProtocol},
		})
	}
	s.membersChanged(slices.Clone(s.live))
}

// Connect begins a link to a peer.
func (s *Stepped) Connect(peer link.Hello) {
	l := &steppedLink{s: s, hello: peer, heard: s.cfg.Now()}
	s.wires[peer.Node] = l
	s.linkUp(l)
}

// Disconnect ends the link to a peer, if there is one.
func (s *Stepped) Disconnect(peer string) {
	if l := s.wires[peer]; l != nil {
		delete(s.wires, peer)
		s.linkDown(l)
	}
}

// Heard says that a peer lives, as the pings of an idle link do.
func (s *Stepped) Heard(from string) {
	if l := s.wires[from]; l != nil {
		l.heard = s.cfg.Now()
	}
}

// Deliver hands over a frame of a peer. True: it was a digest, and Answer is to be
// called, once for each.
func (s *Stepped) Deliver(from string, kind byte, body []byte) (question bool) {
	l := s.wires[from]
	if l == nil {
		return false
	}
	l.heard = s.cfg.Now()
	s.frame(l, kind, body)
	p := s.peers.get(from)
	if p == nil {
		return false
	}
	for m, ok := p.inbox.take(); ok; m, ok = p.inbox.take() {
		s.apply(p, m, &s.run)
	}
	for m, ok := p.hears.box.take(); ok; m, ok = p.hears.box.take() {
		s.index.apply(p, m)
	}
	return kind == wire.Digest
}

// Answer answers the next digest of a peer. It waits while pages are under way,
// and must not be called again for any peer of this node meanwhile.
func (s *Stepped) Answer(ctx context.Context, to string) {
	p := s.peers.get(to)
	if p == nil {
		return
	}
	if m, ok := p.questions.take(); ok {
		s.answerDigest(ctx, p, m.body, &s.theirs, &s.ours)
		p.questions.take() // says that this one is done with
	}
}

// Beat does what is due by time, each BeatEvery.
func (s *Stepped) Beat() {
	s.beats++
	s.doBeat(s.beats, s.cfg.Now())
}

// NewsDue is when TellNews is to be called, false where there is nothing to tell.
// It is to be asked after each call that may have made news.
func (s *Stepped) NewsDue() (at time.Duration, ok bool) {
	now := s.cfg.Now()
	select {
	case <-s.stir:
		if s.due == 0 {
			s.due = max(s.told+s.cfg.NewsEvery, now+linger)
		}
	default:
	}
	select {
	case <-s.outbox.full:
		s.due = now
	default:
	}
	return s.due, s.due != 0
}

// TellNews tells the peers what is new.
func (s *Stepped) TellNews() {
	s.due, s.told = 0, s.cfg.Now()
	s.tellNews()
}

// Warm is whether the node knows what its peers know.
func (s *Stepped) Warm() bool { return s.isWarm() }

// Degraded is how many reservations were decided without the owner.
func (s *Stepped) Degraded() int { return int(s.count.degraded.Load()) }

// steppedLink is a link whose frames the caller carries.
type steppedLink struct {
	s     *Stepped
	hello link.Hello
	heard time.Duration
}

func (l *steppedLink) Name() string           { return l.hello.Node }
func (l *steppedLink) Boot() uint64           { return l.hello.Boot }
func (l *steppedLink) Hello() link.Hello      { return l.hello }
func (l *steppedLink) Queued(link.Lane) int   { return 0 }
func (l *steppedLink) Hold()                  {}
func (l *steppedLink) Flush()                 {}
func (l *steppedLink) RTT() time.Duration     { return l.s.around.RTT(l.hello.Node) }
func (l *steppedLink) Silence() time.Duration { return l.s.cfg.Now() - l.heard }
func (l *steppedLink) Close(error)            { l.s.around.Cut(l.hello.Node) }

func (l *steppedLink) Send(lane link.Lane, kind byte, parts ...[]byte) bool {
	if l.s.wires[l.hello.Node] != l {
		return false
	}
	return l.s.around.Carry(l.hello.Node, lane, kind, slices.Concat(parts...))
}

// steppedLinkage leaves it to the caller whom there are links with.
type steppedLinkage struct{}

func (steppedLinkage) Run(context.Context)    {}
func (steppedLinkage) SetPeers([]link.Target) {}

type steppedWaiter struct{ around Surroundings }

func (w steppedWaiter) wait(_ context.Context, signal <-chan struct{}, limit time.Duration) waited {
	if w.around.Wait(signal, limit) {
		return signalled
	}
	return tooLong
}

// steppedMembership is who the caller said is there. Facts go over the links.
type steppedMembership struct{ s *Stepped }

var errStepped = errors.New("a stepped node has no membership to leave")

func (m steppedMembership) Run(context.Context)       {}
func (m steppedMembership) Leave(time.Duration) error { return errStepped }
func (m steppedMembership) Members() []member.Member  { return m.s.live }
func (m steppedMembership) Joined() <-chan struct{}   { return m.s.joined }
func (m steppedMembership) Address() string           { return m.s.cfg.Node }

func (m steppedMembership) Tell(f member.Fact)   { m.s.table.Merge(f) }
func (m steppedMembership) Facts() []member.Fact { return m.s.table.All() }

func (m steppedMembership) Learn(facts []member.Fact) {
	for _, f := range facts {
		if m.s.table.Merge(f) == member.Changed {
			m.s.facts.learn(f)
		}
	}
}
