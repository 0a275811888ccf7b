package proxy

import (
	"net"
	"sync/atomic"
	"time"
)

// Patient is a listener whose connections may stay as long without a first request as
// between two. net/http counts the time for a request's headers from the moment of
// the connection, or of its TLS handshake, and answers 400 where a request comes just
// as it runs out: clients open connections ahead of need, and would see that. With
// TLS it stands below it, since net/http has to see the TLS connection itself.
func Patient(l net.Listener) net.Listener { return patient{l} }

type patient struct{ net.Listener }

func (l patient) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &fresh{Conn: c}, nil
}

// Stages of a connection up to its first request. net/http lifts the deadline after
// a handshake, and then sets that of headers if HTTP/1 is spoken; HTTP/2 sets none.
const (
	untouched  = iota // nothing has come
	handshakes        // what has come is TLS
	shaken            // the handshake's deadline was lifted
	awaits            // the deadline of the first request's headers was set
	begun             // an ordinary connection
)

const tlsHandshake = 0x16 // the first byte of TLS, and of no HTTP

// fresh is a connection until its first request has begun, and after that an
// ordinary one.
type fresh struct {
	net.Conn
	stage atomic.Int32
}

// SetReadDeadline puts the deadline of the handshake, and that of the first request's
// headers, off until they begin.
func (c *fresh) SetReadDeadline(t time.Time) error {
	switch c.stage.Load() {
	case untouched:
		t = putOff(t)
	case handshakes:
		if t.IsZero() {
			c.stage.CompareAndSwap(handshakes, shaken)
		}
	case shaken:
		if t.IsZero() {
			break
		}
		c.stage.CompareAndSwap(shaken, awaits)
		t = putOff(t)
	case awaits:
		if t.IsZero() { // the headers came along with the handshake's end
			c.stage.CompareAndSwap(awaits, begun)
		} else {
			t = putOff(t)
		}
	}
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline puts the deadline of the handshake off until it begins.
func (c *fresh) SetWriteDeadline(t time.Time) error {
	if c.stage.Load() == untouched {
		t = putOff(t)
	}
	return c.Conn.SetWriteDeadline(t)
}

// putOff is a deadline for who may wait for the other side to begin. Those that have
// passed, which end a read at once, and none at all, stay as they are.
func putOff(t time.Time) time.Time {
	if !t.IsZero() && time.Until(t) > 0 {
		return time.Now().Add(keepAlive)
	}
	return t
}

func (c *fresh) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	switch stage := c.stage.Load(); stage {
	case untouched:
		next := int32(begun)
		if b[0] == tlsHandshake {
			next = handshakes
			c.Conn.SetWriteDeadline(time.Now().Add(headerTimeout)) // of the handshake
		}
		c.begin(stage, next)
	case awaits:
		c.begin(stage, begun)
	}
	return n, err
}

func (c *fresh) begin(from, to int32) {
	if c.stage.CompareAndSwap(from, to) {
		c.Conn.SetReadDeadline(time.Now().Add(headerTimeout)) // what fails here fails the next read
	}
}

// CloseWrite ends this side's half, as net/http does before it closes on a client that
// still sends: else the answer would be lost to a reset.
func (c *fresh) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
