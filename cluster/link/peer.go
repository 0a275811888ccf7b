package link

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Peer is one link to a peer, from Up to Down. Its methods may be called by any
// goroutine, and after Down too.
type Peer struct {
	l        *Links
	receiver Receiver
	hello    Hello
	protocol uint8
	dialled  bool // by us

	conn   net.Conn // to be closed
	outlet *outlet
	stream net.Conn
	in     frameReader

	// born is when the link was made; the times below are nanoseconds since.
	born      time.Time
	lastFrame atomic.Int64
	lastSent  atomic.Int64
	rtt       atomic.Int64
	bursts    atomic.Bool // see noteBurst
	// confirmed: membership knows this process.
	confirmed atomic.Bool

	mu      sync.Mutex
	queue   queue
	writing bool // someone writes, and looks at the queue when he is done
	corked  int  // who will uncork soon, and write then what is queued
	ending  *ending

	wake  chan struct{} // the writer is to write; goes with writing
	ended chan struct{} // closed with ending set
	down  chan struct{} // closed when the link is no more

	m *peerMetrics
}

func newPeer(h *handshake, hello *Hello, version uint8) *Peer {
	return &Peer{
		l: h.l, receiver: h.l.c.Handler, hello: *hello, protocol: version, dialled: h.dialled,
		conn: h.conn, outlet: h.outlet, stream: h.stream,
		born: time.Now(),
		wake: make(chan struct{}, 1), ended: make(chan struct{}), down: make(chan struct{}),
	}
}

// Name is the node's name.
func (p *Peer) Name() string { return p.hello.Node }

// Boot is the node's process.
func (p *Peer) Boot() uint64 { return p.hello.Boot }

// Hello is what the node said of itself.
func (p *Peer) Hello() Hello { return p.hello }

// Protocol is the version that both sides speak.
func (p *Peer) Protocol() uint8 { return p.protocol }

// RTT is the last measured time of a ping and its pong, 0 before the first.
func (p *Peer) RTT() time.Duration { return time.Duration(p.rtt.Load()) }

// Silence is for how long nothing has been read from the peer.
func (p *Peer) Silence() time.Duration { return time.Duration(p.since() - p.lastFrame.Load()) }

// Queued is how many bytes wait in a lane.
func (p *Peer) Queued(lane Lane) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.lanes[lane].bytes
}

// Close ends the link; the reason goes to the other side. It does not wait: Down
// tells when the link has ended.
func (p *Peer) Close(reason error) {
	if reason == nil {
		reason = errors.New("closed")
	}
	p.end(ended(byCaller, reason))
}

// end ends the link for a first reason; later ones change nothing.
func (p *Peer) end(e *ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending != nil {
		return
	}
	p.ending = e
	p.queue.drop()
	close(p.ended)
}

// since is the link's clock.
func (p *Peer) since() int64 { return int64(time.Since(p.born)) }

// Send queues a frame and copies its parts. It never waits. False: the link is
// down, the lane's bound is reached, or the frame is longer than MaxFrame or of a
// kind of the link's own; the frame will not be sent then. True is no promise
// that it arrives: the link may end before.
//
// Where nobody writes, the caller writes itself what the socket takes at once,
// which saves waking another goroutine.
func (p *Peer) Send(lane Lane, kind byte, parts ...[]byte) bool {
	if kind >= kindLink {
		return false
	}
	return p.send(lane, kind, parts)
}

func (p *Peer) send(lane Lane, kind byte, parts [][]byte) bool {
	size := 0
	for _, b := range parts {
		size += len(b)
	}
	p.mu.Lock()
	waiting := p.queue.lanes[lane].bytes
	full := waiting > 0 && waiting+frameHead+size > p.l.c.Bounds[lane]
	if p.ending != nil || full || size >= MaxFrame {
		p.mu.Unlock()
		p.m.dropped[lane].Inc()
		return false
	}
	p.queue.push(lane, kind, size, parts)
	if p.writing || p.corked > 0 {
		p.mu.Unlock()
		return true
	}
	p.writing = true
	p.start(!p.bursts.Load()) // unlocks
	return true
}

// Hold keeps what is sent from here on together until Flush, so that frames of one
// lane go in one write. Every Hold needs its Flush, soon: whoever else sends
// meanwhile waits for it too.
func (p *Peer) Hold() { p.cork() }

// Flush ends a Hold and writes what was kept.
func (p *Peer) Flush() { p.uncork() }
