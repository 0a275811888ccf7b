package cluster

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/ledger"
)

// lease is how long a node's load counts after its last frame, and how long its
// link may be silent.
const lease = 1500 * time.Millisecond

// peer is another node, by its name, over any number of links and runs of its
// process.
type peer struct {
	name   string
	holder ledger.Holder

	// link is the link now, nil while there is none.
	link atomic.Pointer[attached]
	// complained is whether a malformed frame of it was logged.
	complained atomic.Bool
	// ready is whether it says that it knows what its peers know.
	ready atomic.Bool

	calls    calls
	patience patience
	// quotaPatience is that with questions about limits, which an older node does not
	// know; quotaDue says that it is to be told what is held of its keys, even if
	// that is nothing, and quotaTold what it told of its own.
	quotaPatience patience
	quotaDue      atomic.Bool
	quotaTold     told
	changes       changes
	out           sending
	in            receiving
	pull          pull
	credits       credit

	// inbox takes what is applied in order, questions what is answered at
	// length, both off the link's reader.
	inbox, questions mailbox

	// tells is what it is told of this node's sources, hears what it tells of its own.
	tells tells
	hears hears

	mu     sync.Mutex // guards what follows
	boot   uint64
	leased bool          // its holds and subtotals count
	last   time.Duration // when it was last heard
	// heldDue is when the full set of holds is told next; told whether the last
	// one was not empty.
	heldDue time.Duration
	told    bool
	// held gathers the parts of a set that it tells.
	held []ledger.Held
	// roster is its last whole list of backends, gathering the parts of the next.
	roster, gathering []Backend
	heard             bool // a list has come
	settings          map[string]string
	subtotals         bool // all subtotals must be told: a frame of them was lost

	// rosterTold is the link that the last roster went over; it belongs to tend.
	rosterTold peerLink

	// What follows is the scratch of the link's reader.
	run   wire.Run
	order ledger.Order
	keys  []*entry
	reply []byte
}

// attached is a link in an atomic pointer.
type attached struct{ peerLink }

// connected is the link, if it is up.
func (p *peer) connected() peerLink {
	if at := p.link.Load(); at != nil {
		return at.peerLink
	}
	return nil
}

// detach ends a link if it is the one now.
func (p *peer) detach(l peerLink) bool {
	at := p.link.Load()
	return at != nil && at.peerLink == l && p.link.CompareAndSwap(at, nil)
}

// send queues a frame on the link, if there is one; false where it was not taken.
func (p *peer) send(lane link.Lane, kind byte, parts ...[]byte) bool {
	l := p.connected()
	return l != nil && l.Send(lane, kind, parts...)
}

// peers are the nodes met so far. A holder's number is used again when its node
// is neither a member nor leased.
type peers struct {
	mu     sync.RWMutex
	byName map[string]*peer
	used   [ledger.MaxHolders]bool
}

// get returns the peer of that name, nil where it is unknown.
func (s *peers) get(name string) *peer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byName[name]
}

// meet returns the peer of that name, made if need be; nil where all numbers
// for holders are taken.
func (s *peers) meet(name string) *peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byName[name]; p != nil {
		return p
	}
	for h := ledger.Self + 1; h < ledger.MaxHolders; h++ {
		if !s.used[h] {
			s.used[h] = true
			p := &peer{name: name, holder: h}
			p.inbox.init(inboxBytes)
			p.questions.init(questionBytes)
			p.hears.box.init(sourceInbox)
			p.credits.moved = make(chan struct{}, 1)
			if s.byName == nil {
				s.byName = make(map[string]*peer)
			}
			s.byName[name] = p
			return p
		}
	}
	return nil
}

// forget drops a peer that is gone for good.
func (s *peers) forget(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[p.name] == p {
		delete(s.byName, p.name)
		s.used[p.holder] = false
	}
}

// all lists the peers by name.
func (s *peers) all() []*peer {
	s.mu.RLock()
	list := make([]*peer, 0, len(s.byName))
	for _, p := range s.byName {
		list = append(list, p)
	}
	s.mu.RUnlock()
	slices.SortFunc(list, func(a, b *peer) int { return strings.Compare(a.name, b.name) })
	return list
}

// leaseOver is whether the lease has just run out; it says so once.
func (p *peer) leaseOver(now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leased {
		return false
	}
	if l := p.connected(); l != nil {
		p.last = now - l.Silence()
	}
	if now-p.last < lease {
		return false
	}
	p.leased = false
	return true
}

// changes are what became of reservations at an owner and was not told yet.
type changes struct {
	mu  sync.Mutex
	buf []byte
}

const (
	// changesFull is how many bytes of changes are told at once.
	changesFull = 4 << 10
	// changesBound is how many may wait for a link: what is beyond is healed by
	// the next held set.
	changesBound = 256 << 10
)

// add appends a change and says whether there is enough to be told now.
func (s *changes) add(op wire.Op, h *wire.Hold) (full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.buf) < changesBound {
		s.buf = wire.AppendChange(s.buf, op, h)
	}
	return len(s.buf) >= changesFull
}

// tell sends what has gathered.
func (s *changes) tell(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.buf) > 0 {
		p.send(link.Urgent, wire.Changes, s.buf)
		s.buf = s.buf[:0]
	}
}
