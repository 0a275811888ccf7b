package backend

import (
	"errors"
	"io"
	"net"
	"sync"
)

var errPayloadGone = errors.New("request body is no longer there")

// payload reads a request body out of a slice that somebody else owns. Once
// detached it touches the slice no more, so that the owner may use it again while
// net/http still holds the reader.
type payload struct {
	mu   sync.Mutex // held while the slice is read, during a write to the backend too
	rest []byte
	gone bool
}

func (p *payload) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
		return 0, errPayloadGone
	case len(p.rest) == 0:
		return 0, io.EOF
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close is net/http's: it has read what it wants.
func (p *payload) Close() error { return nil }

// detach waits for a write in progress, which ends with its connection. A body that
// has been read whole still ends in io.EOF: net/http asks once more, and takes
// anything else for a broken request.
func (p *payload) detach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest, p.gone = nil, p.gone || len(p.rest) > 0
}

// sent reports whether all has been read, without waiting for a write in progress.
func (p *payload) sent() bool {
	if !p.mu.TryLock() {
		return false
	}
	defer p.mu.Unlock()
	return len(p.rest) == 0
}

// writeTo writes at most limit bytes of what is left with a single Write.
func (p *payload) writeTo(w io.Writer, limit int64) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return 0, errPayloadGone
	}
	n, err := w.Write(p.rest[:min(limit, int64(len(p.rest)))])
	p.rest = p.rest[n:]
	return int64(n), err
}

// bulkConn writes a payload as it lies. net/http hands a body that exceeds its
// write buffer to the connection's ReadFrom, which would copy it through 32 KiB:
// thirteen writes and as many copies for a prompt of 100k tokens.
type bulkConn struct{ net.Conn }

func (c bulkConn) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if p, ok := limited.R.(*payload); ok {
			n, err := p.writeTo(c.Conn, limited.N)
			limited.N -= n
			return n, err
		}
	}
	return io.Copy(c.Conn, r)
}

// CloseWrite ends this side's half of a connection that has become a WebSocket.
func (c bulkConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
