package simnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// conn is one end of a stream.
type conn struct {
	net           *Network
	host, peer    *Host
	in, out       *pipe
	local, remote net.Addr

	// Guarded by the network's mutex.
	readBy, writeBy time.Time
	closed          bool
	broken          error // what this end was told at once, whoever reaches whom
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) fault(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Read reads what has arrived, or waits for something.
func (c *conn) Read(b []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	for {
		now := time.Now()
		if err := c.stopped(c.in, c.readBy, now); err != nil {
			return 0, c.fault("read", err)
		}
		if !c.host.paused {
			c.in.arrive(now)
			switch {
			case len(b) == 0:
				return 0, nil
			case len(c.in.ready) > 0:
				return c.in.take(b), nil
			case c.in.over(now):
				return 0, io.EOF
			}
		}
		c.wait(c.in, earlier(c.readBy, c.arrival()))
	}
}

func (c *conn) arrival() time.Time {
	if c.host.paused {
		return time.Time{}
	}
	return c.in.due()
}

// Write sends b, and waits for room where the reader is slow.
func (c *conn) Write(b []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	sent := 0
	for {
		now := time.Now()
		if err := c.stopped(c.out, c.writeBy, now); err != nil {
			return sent, c.fault("write", err)
		}
		if !c.host.paused {
			if c.out.gone && c.net.reach(c.host, c.peer) {
				return sent, c.fault("write", syscall.EPIPE)
			}
			sent += c.out.put(b[sent:], now)
			if sent == len(b) {
				return sent, nil
			}
		}
		c.wait(c.out, c.writeBy)
	}
}

// stopped is why nothing more goes through p here, nil if it does. Lock held.
func (c *conn) stopped(p *pipe, deadline, now time.Time) error {
	switch {
	case c.broken != nil:
		return c.broken
	case c.closed:
		return net.ErrClosed
	case p.reset != nil && c.net.reach(c.host, c.peer) && !c.host.paused:
		return p.reset
	case !deadline.IsZero() && !now.Before(deadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wait lets go of the lock until p changes or until comes.
func (c *conn) wait(p *pipe, until time.Time) {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	changed := p.changed
	c.net.mu.Unlock()
	defer c.net.mu.Lock()
	if until.IsZero() {
		<-changed
		return
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Close ends this side; the peer reads what was sent and then the end.
func (c *conn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return c.fault("close", net.ErrClosed)
	}
	c.closed = true
	c.out.ended, c.in.gone = true, true
	c.out.hold(time.Now())
	c.in.wake()
	c.out.wake()
	delete(c.net.conns, c)
	return nil
}

// reset breaks the connection for both ends. Lock held.
func (c *conn) reset(err error) {
	for _, p := range []*pipe{c.in, c.out} {
		if p.reset == nil {
			p.reset = err
		}
		p.wake()
	}
	if c.host.killed {
		c.broken = err
	}
}

func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	return c.deadline(&c.readBy, c.in, t)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.deadline(&c.writeBy, c.out, t)
}

func (c *conn) deadline(which *time.Time, p *pipe, t time.Time) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return c.fault("set", net.ErrClosed)
	}
	*which = t
	p.wake()
	return nil
}
