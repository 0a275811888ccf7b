package zmtp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	readBuffer = 32 << 10
	// Up to this a message is sent in one write, copied together.
	joinBytes = 64 << 10
)

// Conn is one connection that has shaken hands. One goroutine may receive while
// others send; Close is safe from any.
type Conn struct {
	c          Config
	net        net.Conn
	socketType string
	ctx        context.Context // ends the connection
	unhook     func() bool     // lets go of ctx
	close      sync.Once
	in         reader

	// Only the receiving goroutine touches these.
	up       bool // hands were shaken: reads keep the heartbeat
	answered bool // the peer has ever sent a PONG
	nextPing time.Time

	mu  sync.Mutex // serializes writes, guards out
	out []byte
}

// Dial makes one connection: a DEALER for a replay, a PUB for an engine that
// connects to its subscriber. ctx bounds the whole life of the connection, its
// deadline that of every Receive.
func Dial(ctx context.Context, c Config, socketType string) (*Conn, error) {
	c = c.withDefaults()
	network, address, err := Address(c.Endpoint, false)
	if c.Bind {
		err = errors.Join(err, errors.New("bind: true: want false, since Dial connects"))
	}
	if err := errors.Join(err, checkType(socketType), c.validateRest()); err != nil {
		return nil, err
	}
	return connect(ctx, c, socketType, network, address)
}

// Accept takes the server's part on a connection that a listener has accepted: PUB
// or ROUTER. It owns conn from here on. Of c the endpoint is not used.
func Accept(ctx context.Context, conn net.Conn, c Config, socketType string) (*Conn, error) {
	c = c.withDefaults()
	if err := errors.Join(checkType(socketType), c.validateRest()); err != nil {
		conn.Close()
		return nil, err
	}
	return open(ctx, conn, c, socketType)
}

func checkType(socketType string) error {
	if peers[socketType] == nil {
		return fmt.Errorf("socket type: %q can't be made: want SUB, DEALER, PUB or ROUTER", socketType)
	}
	return nil
}

func connect(ctx context.Context, c Config, socketType, network, address string) (*Conn, error) {
	timeout, cancel := context.WithTimeout(ctx, connectTimeout)
	nc, err := c.Dial(timeout, network, address)
	cancel()
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.Endpoint, err)
	}
	conn, err := open(ctx, nc, c, socketType)
	if err != nil {
		return nil, fmt.Errorf("handshake with %s: %w", c.Endpoint, err)
	}
	return conn, nil
}

// open shakes hands on nc, which it owns.
func open(ctx context.Context, nc net.Conn, c Config, socketType string) (*Conn, error) {
	boundUnsent(nc)
	conn := newConn(ctx, nc, c, socketType)
	conn.unhook = context.AfterFunc(ctx, conn.shut)
	if err := conn.shake(); err != nil {
		err = conn.because(err)
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func newConn(ctx context.Context, nc net.Conn, c Config, socketType string) *Conn {
	conn := &Conn{c: c, net: nc, socketType: socketType, ctx: ctx, unhook: func() bool { return true }}
	conn.in = reader{
		src:        bufio.NewReaderSize(pulse{conn}, readBuffer),
		maxFrame:   c.MaxFrame,
		maxMessage: c.MaxMessage,
	}
	return conn
}

// Peer is the address of the other side.
func (c *Conn) Peer() string { return c.net.RemoteAddr().String() }

// Receive returns the next message; its frames are valid until the next call. For
// a PUB these are subscriptions: one frame of 0x01, or 0x00 to cancel, and the
// topic. An error is final.
func (c *Conn) Receive() ([][]byte, error) {
	for {
		frames, command, err := c.in.next()
		if err == nil && frames != nil {
			return frames, nil
		}
		if err == nil {
			frames, err = c.obey(command)
		}
		if err != nil {
			return nil, c.because(err)
		}
		if frames != nil {
			return frames, nil
		}
	}
}

// obey does what a command asks for; a subscription becomes a message.
func (c *Conn) obey(command []byte) ([][]byte, error) {
	name, rest, err := splitCommand(command)
	if err != nil {
		return nil, err
	}
	switch name {
	case "PING":
		if len(rest) < 2 {
			return nil, fmt.Errorf("PING of %d bytes: want a time to live of 2 and a context", len(rest))
		}
		return nil, c.sendCommand("PONG", rest[2:])
	case "PONG":
		c.answered = true
	case "ERROR":
		return nil, refusal(rest)
	case "SUBSCRIBE":
		return c.subscription(1, rest), nil
	case "CANCEL":
		return c.subscription(0, rest), nil
	}
	return nil, nil
}

func (c *Conn) subscription(kind byte, topic []byte) [][]byte {
	if c.socketType != "PUB" {
		return nil
	}
	return [][]byte{append([]byte{kind}, topic...)}
}

// Send sends one message of 1 to 8 frames. It waits no longer than WriteTimeout;
// an error is final and closes the connection, since a part may have been sent.
func (c *Conn) Send(frames ...[]byte) error {
	if len(frames) == 0 || len(frames) > maxParts {
		return fmt.Errorf("send a message of %d frames: want 1 to %d", len(frames), maxParts)
	}
	total := 0
	for _, f := range frames {
		total += len(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = c.out[:0]
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		c.out = appendHeader(c.out, flags, len(f))
		if total <= joinBytes {
			c.out = append(c.out, f...)
			continue
		}
		if err := c.flush(); err != nil {
			return err
		}
		if err := c.write(f); err != nil {
			return err
		}
	}
	return c.flush()
}

func (c *Conn) sendCommand(name string, rest []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = appendCommand(c.out[:0], name, rest)
	return c.flush()
}

// flush writes what is in out. mu is held.
func (c *Conn) flush() error {
	err := c.write(c.out)
	c.out = c.out[:0]
	return err
}

// write closes the connection where it fails. mu is held.
func (c *Conn) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	err := c.net.SetWriteDeadline(time.Now().Add(c.c.WriteTimeout))
	if err == nil {
		_, err = c.net.Write(b)
	}
	if err != nil {
		c.shut()
		return c.because(fmt.Errorf("send: %w", err))
	}
	return nil
}

// Close ends the connection. A Receive that waits returns.
func (c *Conn) Close() error {
	c.unhook()
	c.shut()
	return nil
}

// shut closes the socket once; who comes second waits for the first.
func (c *Conn) shut() { c.close.Do(func() { c.net.Close() }) }

// because names the context as the reason where it is one: the error of a socket
// that it has closed says nothing.
func (c *Conn) because(err error) error {
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return err
}
