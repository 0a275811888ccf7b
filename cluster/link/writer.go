package link

import (
	"fmt"
	"time"
)

// Whoever sets writing is the one who writes, until he finds the queue empty and
// takes it back, or wakes the writer, to whom it passes. So wake never holds more
// than one.

// start writes what is queued, or has it written. The caller holds mu, has set
// writing, and knows that the queue is not empty; start unlocks.
//
// At once means: one chunk, tried once. What the socket does not take, and what
// others queued meanwhile, is left to the writer.
func (p *Peer) start(atOnce bool) {
	if !atOnce || p.outlet.raw == nil || p.queue.long > 0 {
		p.mu.Unlock()
		p.wake <- struct{}{}
		return
	}
	c := p.queue.pop()
	p.mu.Unlock()
	p.outlet.eager.Store(true)
	err := p.put(c)
	p.outlet.eager.Store(false)
	if err == nil && (p.outlet.pending() || !p.rest()) {
		p.wake <- struct{}{}
	}
}

// rest ends the writing if there is nothing to write.
func (p *Peer) rest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = !p.queue.empty()
	return !p.writing
}

// put writes a chunk and gives it back.
func (p *Peer) put(c *chunk) error {
	defer c.free()
	if _, err := p.stream.Write(c.buf); err != nil {
		p.end(endedf(byWrite, "write %d bytes: %w", len(c.buf), err))
		return err
	}
	p.lastSent.Store(p.since())
	p.m.sentFrames[c.lane].Add(float64(c.frames))
	p.m.sentBytes[c.lane].Add(float64(len(c.buf)))
	return nil
}

// write is the writer's goroutine.
func (p *Peer) write() {
	for {
		select {
		case <-p.ended:
			return
		case <-p.wake:
		}
		if err := p.drain(); err != nil {
			p.end(ended(byWrite, err))
			return
		}
	}
}

// drain writes until nothing is left, each chunk within WriteTimeout. In the end
// it takes the deadline away, or that would fail a sender's own attempt later.
func (p *Peer) drain() error {
	if err := p.setDeadline(p.l.c.WriteTimeout); err != nil {
		return err
	}
	if err := p.outlet.flush(); err != nil {
		return fmt.Errorf("write what an attempt left: %w", err)
	}
	for {
		p.mu.Lock()
		c := p.queue.pop()
		p.mu.Unlock()
		if c == nil {
			if err := p.setDeadline(0); err != nil || p.rest() {
				return err
			}
			continue
		}
		if err := p.setDeadline(p.l.c.WriteTimeout); err != nil {
			return err
		}
		if err := p.put(c); err != nil {
			return err
		}
	}
}

// setDeadline is for writes; 0: none.
func (p *Peer) setDeadline(d time.Duration) error {
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
	}
	if err := p.conn.SetWriteDeadline(t); err != nil {
		return fmt.Errorf("set write deadline: %w", err)
	}
	return nil
}

// farewellTimeout is short: whoever does not read at once learns it from the
// closed connection.
const farewellTimeout = 100 * time.Millisecond

// farewell tells the other side why the link ends, if nobody is at writing.
func (p *Peer) farewell(e *ending) {
	p.mu.Lock()
	busy := p.writing
	p.writing = true
	p.mu.Unlock()
	if busy || !e.reason.said() || p.outlet.pending() || p.setDeadline(farewellTimeout) != nil {
		return
	}
	text := e.Error()
	text = text[:min(len(text), maxReason)]
	p.stream.Write(appendFrame(nil, kindBye, len(text), []byte(text))) //nolint:errcheck // it ends either way
}
