package proxy

import (
	"net"
	"sync/atomic"
	"time"
)

// Patient is a listener whose connections may stay as long without a first request as
// between two. net/http counts the time for a request's headers from the moment of
// the connection, and answers 400 where a request comes just as it runs out: clients
// open connections ahead of need, and would see that.
func Patient(l net.Listener) net.Listener { return patient{l} }

type patient struct{ net.Listener }

func (l patient) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &fresh{Conn: c}, nil
}

// fresh is a connection until its first byte has come, and after that an ordinary one.
type fresh struct {
	net.Conn
	begun atomic.Bool
}

// SetReadDeadline puts the deadline of the first request's headers off until they
// begin.
func (c *fresh) SetReadDeadline(t time.Time) error {
	if !c.begun.Load() && !t.IsZero() && time.Until(t) > 0 {
		t = time.Now().Add(keepAlive)
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *fresh) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.begun.Swap(true) {
		c.Conn.SetReadDeadline(time.Now().Add(headerTimeout)) // what fails here fails the next read
	}
	return n, err
}

// CloseWrite ends this side's half, as net/http does before it closes on a client that
// still sends: else the answer would be lost to a reset.
func (c *fresh) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
