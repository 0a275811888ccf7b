package listen

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// headerTime is how long a PROXY header may take from the connection on. A
// connection that has sent nothing by then has none.
const headerTime = 5 * time.Second

// ProxyProtocol is a listener behind load balancers that say by the PROXY protocol,
// version 1 or 2, who the client is. Peers in the trusted networks are believed,
// and may also send no header; a header of anyone else ends the connection. It
// stands below TLS, since that is where balancers put the header.
func ProxyProtocol(l net.Listener, trusted []netip.Prefix, log *slog.Logger) net.Listener {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &balanced{Listener: l, trusted: trusted, log: log}
}

type balanced struct {
	net.Listener
	trusted []netip.Prefix
	log     *slog.Logger
	seldom  seldom
}

// Accept does not wait for the header: whoever first needs it does.
func (l *balanced) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.trusts(c.RemoteAddr()) {
		return &announced{Conn: c, listener: l}, nil
	}
	return &wary{Conn: c, listener: l}, nil
}

func (l *balanced) trusts(peer net.Addr) bool {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return false
	}
	addr := tcp.AddrPort().Addr().Unmap()
	for _, network := range l.trusted {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// complain is about peers that don't do as configured: of one who does it on each
// connection, a line a minute is enough.
func (l *balanced) complain(peer net.Addr, err error) {
	if l.seldom.now(time.Now()) {
		l.log.Warn("connection closed for its PROXY header", slog.String("peer", peer.String()), slog.String("error", err.Error()))
	}
}

// announced is a connection of a trusted peer. Its methods wait for the header.
type announced struct {
	net.Conn
	listener *balanced
	once     sync.Once
	client   net.Addr // nil where the header names none
	rest     []byte   // read with the header and not yet given to Read
	err      error
}

func (c *announced) header() error {
	c.once.Do(func() {
		c.Conn.SetReadDeadline(time.Now().Add(headerTime)) // what fails here fails the read
		var h proxyHeader
		if h, c.rest, c.err = readProxyHeader(c.Conn); c.err != nil {
			c.Conn.Close()
			c.listener.complain(c.Conn.RemoteAddr(), c.err)
			return
		}
		if h.client.IsValid() {
			c.client = net.TCPAddrFromAddrPort(h.client)
		}
		c.Conn.SetReadDeadline(time.Time{})
	})
	return c.err
}

// readProxyHeader returns what was read beyond the header as well.
func readProxyHeader(r io.Reader) (proxyHeader, []byte, error) {
	b := make([]byte, 0, 256)
	for {
		h, err := parseProxyHeader(b)
		if !errors.Is(err, errMore) {
			return h, b[h.size:], err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)] // the header's own length bounds it
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == nil || n > 0:
		case len(b) == 0 && (err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded)):
			return proxyHeader{}, nil, nil // a check whether the port is open, or one that waits
		default:
			return proxyHeader{}, nil, fmt.Errorf("read PROXY header after %d bytes: %w", len(b), err)
		}
	}
}

func (c *announced) Read(b []byte) (int, error) {
	if err := c.header(); err != nil {
		return 0, err
	}
	if len(c.rest) > 0 {
		n := copy(b, c.rest)
		if c.rest = c.rest[n:]; len(c.rest) == 0 {
			c.rest = nil
		}
		return n, nil
	}
	return c.Conn.Read(b)
}

// RemoteAddr is the client's, as the header says, else the peer's.
func (c *announced) RemoteAddr() net.Addr {
	if c.header(); c.client != nil {
		return c.client
	}
	return c.Conn.RemoteAddr()
}

// SetReadDeadline waits for the header, whose own deadline would undo it.
func (c *announced) SetReadDeadline(t time.Time) error {
	if err := c.header(); err != nil {
		return err
	}
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline is the same for both directions.
func (c *announced) SetDeadline(t time.Time) error {
	if err := c.header(); err != nil {
		return err
	}
	return c.Conn.SetDeadline(t)
}

// CloseWrite ends this side's half, where the connection has halves.
func (c *announced) CloseWrite() error { return closeWrite(c.Conn) }

var errNotTrusted = errors.New("a PROXY header of a peer in none of the trusted networks")

// wary is a connection of anyone else: it breaks as soon as its first bytes are
// those of a PROXY header, which are none of HTTP or TLS.
type wary struct {
	net.Conn
	listener *balanced
	start    [len(binStart)]byte
	seen     int // bytes of start
	clear    bool
}

func (c *wary) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.clear || n == 0 {
		return n, err
	}
	c.seen += copy(c.start[c.seen:], b[:n])
	switch seen := c.start[:c.seen]; {
	case c.seen >= len(textStart) && begins(seen, textStart), c.seen == len(binStart) && begins(seen, binStart):
		c.Conn.Close()
		c.listener.complain(c.RemoteAddr(), errNotTrusted)
		return 0, errNotTrusted
	case !begins(seen, textStart) && !begins(seen, binStart):
		c.clear = true
	}
	return n, err
}

// CloseWrite ends this side's half, where the connection has halves.
func (c *wary) CloseWrite() error { return closeWrite(c.Conn) }
