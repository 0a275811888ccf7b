package simnet

import (
	"context"
	"net"
	"syscall"
	"time"
)

const backlog = 128 // connections that wait to be accepted

// listener accepts streams at a host's port.
type listener struct {
	host    *Host
	port    int
	backlog chan net.Conn
	done    chan struct{}
	closed  bool
}

// Listen listens for streams at a port; 0 takes a free one.
func (h *Host) Listen(port int) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	l, err := h.listen(port)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// listen opens a port. Lock held.
func (h *Host) listen(port int) (*listener, error) {
	if port == 0 {
		port = h.freePort()
	}
	switch {
	case h.killed:
		return nil, h.fault("listen", syscall.ENETDOWN)
	case h.listeners[port] != nil:
		return nil, h.fault("listen", syscall.EADDRINUSE)
	}
	l := &listener{host: h, port: port, backlog: make(chan net.Conn, backlog), done: make(chan struct{})}
	h.listeners[port] = l
	return l, nil
}

func (h *Host) freePort() int {
	h.ephemeral++
	return h.ephemeral
}

func (h *Host) fault(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: h.addr(0), Err: err}
}

func (h *Host) addr(port int) net.Addr {
	return &net.TCPAddr{IP: h.ip.AsSlice(), Port: port}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.done:
		return nil, l.host.fault("accept", net.ErrClosed)
	}
}

func (l *listener) Addr() net.Addr { return l.host.addr(l.port) }

func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.closed {
		return l.host.fault("close", net.ErrClosed)
	}
	l.close()
	return nil
}

// close ends the listener and the connections nobody accepted. Lock held.
func (l *listener) close() {
	if l.closed {
		return
	}
	l.closed = true
	close(l.done)
	if l.host.listeners[l.port] == l {
		delete(l.host.listeners, l.port)
	}
	for {
		select {
		case c := <-l.backlog:
			c.(*conn).reset(syscall.ECONNRESET)
		default:
			return
		}
	}
}

// Dial connects to "name:port" or "ip:port". In a partition, and while this host is
// paused, it waits as long as ctx does.
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return h.dial(ctx, addr, func() bool { return false })
}

// dial is Dial for a process that may be over: gone says so, with the lock held.
func (h *Host) dial(ctx context.Context, addr string, gone func() bool) (net.Conn, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	to, port, err := n.find(addr)
	if err != nil {
		return nil, h.fault("dial", err)
	}
	// The way there and back, once the first packet gets through.
	due := time.Time{}
	for {
		switch {
		case h.killed || gone():
			return nil, h.fault("dial", syscall.ENETDOWN)
		case ctx.Err() != nil:
			return nil, to.fault("dial", ctx.Err())
		case h.paused || !n.reach(h, to):
			n.sleep(ctx, time.Time{})
		case due.IsZero():
			due = time.Now().Add(n.draw(n.streams) + n.draw(n.streams))
		case time.Now().Before(due):
			n.sleep(ctx, due)
		default:
			return h.connect(to, port)
		}
	}
}

// sleep waits, without the lock, until the faults change, until comes or ctx ends.
func (n *Network) sleep(ctx context.Context, until time.Time) {
	changed := n.changed
	n.mu.Unlock()
	defer n.mu.Lock()
	var due <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
	case <-due:
	case <-ctx.Done():
	}
}

// connect makes the two ends. Lock held.
func (h *Host) connect(to *Host, port int) (net.Conn, error) {
	l := to.listeners[port]
	if l == nil || len(l.backlog) == cap(l.backlog) {
		return nil, to.fault("dial", syscall.ECONNREFUSED)
	}
	there, back := newPipe(h, to), newPipe(to, h)
	from, at := h.addr(h.freePort()), to.addr(port)
	ours := &conn{net: h.net, host: h, peer: to, in: back, out: there, local: from, remote: at}
	theirs := &conn{net: h.net, host: to, peer: h, in: there, out: back, local: at, remote: from}
	h.net.conns[ours], h.net.conns[theirs] = struct{}{}, struct{}{}
	l.backlog <- theirs // room was looked for above, with the lock held since
	return ours, nil
}
