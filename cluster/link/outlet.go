package link

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// An outlet is the connection's end that is written to, by the link or by TLS
// above it. While it is eager a write never waits: what the socket does not take
// at once is kept in rest, and whoever wrote must see to it that it is flushed.
// That is how a sender may write without a writer in between, TLS included, whose
// records may not be broken off.
//
// The link sees to it that only one goroutine writes at a time; the lock is for
// TLS, which answers a key update from within a read.
type outlet struct {
	net.Conn
	raw   syscall.RawConn // nil: this connection can only be waited for
	eager atomic.Bool

	mu   sync.Mutex
	rest []byte

	// What one attempt gets and gives, kept here since a closure would allocate.
	attempt func(fd uintptr) bool
	b       []byte
	n       int
	err     error
}

func newOutlet(c net.Conn) *outlet {
	o := &outlet{Conn: c}
	if sc, ok := c.(syscall.Conn); ok && canAttempt {
		if raw, err := sc.SyscallConn(); err == nil {
			o.raw = raw
			o.attempt = func(fd uintptr) bool {
				o.n, o.err = writeNow(fd, o.b)
				return true // never wait until it is writable
			}
		}
	}
	return o
}

func (o *outlet) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.eager.Load() {
		if err := o.flushLocked(); err != nil {
			return 0, err
		}
		return o.Conn.Write(b)
	}
	n := 0
	if len(o.rest) == 0 {
		var err error
		if n, err = o.once(b); err != nil {
			return n, err
		}
	}
	o.rest = append(o.rest, b[n:]...)
	return len(b), nil
}

// once hands the socket what it takes now.
func (o *outlet) once(b []byte) (int, error) {
	o.b, o.n, o.err = b, 0, nil
	err := o.raw.Write(o.attempt)
	o.b = nil
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, nil // of an earlier write: the writer sets a new one
	}
	if err != nil {
		return 0, err
	}
	return o.n, o.err
}

// pending says whether an eager write left something behind.
func (o *outlet) pending() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.rest) > 0
}

// flush writes what eager writes left, and waits for it.
func (o *outlet) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.flushLocked()
}

func (o *outlet) flushLocked() error {
	if len(o.rest) == 0 {
		return nil
	}
	_, err := o.Conn.Write(o.rest)
	o.rest = nil
	return err
}
