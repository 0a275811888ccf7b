package link

import "time"

// Peer is one link to a peer, from Up to Down. Its methods may be called by any
// goroutine, and after Down too.
type Peer struct {
	hello    Hello
	protocol uint8
}

func (p *Peer) Name() string         { return p.hello.Node }
func (p *Peer) Boot() uint64         { return p.hello.Boot }
func (p *Peer) Hello() Hello         { return p.hello }
func (p *Peer) Protocol() uint8      { return p.protocol }
func (p *Peer) RTT() time.Duration   { return 0 }
func (p *Peer) LastFrame() time.Time { return time.Time{} }

// Send queues a frame and says whether it did.
func (p *Peer) Send(lane Lane, kind byte, parts ...[]byte) bool { return false }

// Queued returns the bytes that wait in a lane.
func (p *Peer) Queued(lane Lane) int { return 0 }

// Close ends the link.
func (p *Peer) Close(reason error) {}
