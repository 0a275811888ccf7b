package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const (
	// smallFrame is what is over soon, so that replies may wait for a few more.
	smallFrame = 1 << 10
	// corkedFrames bounds how many small frames replies wait for.
	corkedFrames = 64
	// burstFrames that wait behind another make a burst.
	burstFrames = 2
)

// read is the reader's loop. It hands out frames until the link ends, and returns
// why it thinks so.
//
// Where a frame and the next one are small and both are there already, what is
// sent meanwhile waits: the replies to a burst go out in one write.
func (p *Peer) read() *ending {
	run := 0
	for {
		kind, body, err := p.in.next()
		if err != nil {
			return readEnding(err)
		}
		more := len(body) <= smallFrame && run < corkedFrames && p.smallNext()
		if more && run == 0 {
			p.cork()
		}
		e := p.dispatch(kind, body)
		p.m.received(len(body) + frameHead)
		if more {
			run++
		} else {
			p.noteBurst(run)
			if run > 0 {
				p.uncork()
				run = 0
			}
		}
		if e != nil {
			return e
		}
	}
}

func readEnding(err error) *ending {
	if errors.Is(err, errGarbage) {
		return ended(byGarbage, err)
	}
	return ended(byRead, fmt.Errorf("read: %w", err))
}

// smallNext says whether a small frame is in the buffer.
func (p *Peer) smallNext() bool {
	size, whole, err := p.in.peek()
	return err == nil && whole && size <= smallFrame
}

// noteBurst remembers whether small frames come in numbers. Then many callers are
// at work here or there, and what they send next is better gathered by the writer
// than written one by one.
func (p *Peer) noteBurst(run int) {
	if burst := run >= burstFrames; burst != p.bursts.Load() {
		p.bursts.Store(burst)
	}
}

func (p *Peer) cork() {
	p.mu.Lock()
	p.corked++
	p.mu.Unlock()
}

func (p *Peer) uncork() {
	p.mu.Lock()
	p.corked--
	if p.corked > 0 || p.writing || p.ending != nil || p.queue.empty() {
		p.mu.Unlock()
		return
	}
	p.writing = true
	p.start(true) // unlocks
}

func (p *Peer) dispatch(kind byte, body []byte) *ending {
	if kind < kindLink {
		p.receiver.Frame(p, kind, body)
		return nil
	}
	switch kind {
	case kindPing:
		if len(body) > pingSize {
			body = body[:pingSize]
		}
		p.send(Urgent, kindPong, [][]byte{body})
	case kindPong:
		p.pong(body)
	case kindBye:
		return endedf(byPeer, "closed by the other side: %s", body[:min(len(body), maxReason)])
	case kindHello, kindAccept, kindRefuse, kindProof:
		return endedf(byGarbage, "%w: kind %#x after the handshake", errGarbage, kind)
	}
	return nil // a later version's
}

// A ping carries the sender's own clock, which its pong brings back.
const pingSize = 8

func (p *Peer) ping() {
	var b [pingSize]byte
	binary.LittleEndian.PutUint64(b[:], uint64(p.since()))
	p.send(Urgent, kindPing, [][]byte{b[:]})
}

func (p *Peer) pong(body []byte) {
	if len(body) != pingSize {
		return
	}
	rtt := p.since() - int64(binary.LittleEndian.Uint64(body))
	if rtt < 0 || rtt > int64(2*p.l.c.Lease) {
		return
	}
	p.rtt.Store(max(rtt, 1))
	p.m.rtt.Observe(time.Duration(rtt).Seconds())
}
