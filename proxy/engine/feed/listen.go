package feed

import (
	"bytes"
	"sync"
	"sync/atomic"

	"kvca/proxy/engine/zmtp"
)

// listener is the zmtp.Handler: it copies what comes into the inbox. Its calls
// come from several goroutines where the endpoint is bound.
type listener struct {
	inbox   *inbox
	foreign atomic.Uint64 // messages of connections that another has replaced

	mu      sync.Mutex // held while the inbox gets what depends on current
	current *zmtp.Conn // the newest, which alone speaks
}

// Connected makes c the one that speaks: an engine that restarts may be back
// before its old connection is known to be dead.
func (l *listener) Connected(c *zmtp.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = c
	l.foreign.Store(0)
	l.inbox.put(item{kind: connectionUp})
}

// Message never waits: a reader that does would have the engine drop batches.
func (l *listener) Message(c *zmtp.Conn, frames [][]byte) {
	seq, payload, err := numbered(frames)
	var b batch
	if err == nil {
		b = newBatch(seq, bytes.Clone(payload))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c != l.current:
		l.foreign.Add(1)
	case err != nil:
		l.inbox.putMalformed(err)
	default:
		l.inbox.putLive(b)
	}
}

// Disconnected counts only for the connection that speaks.
func (l *listener) Disconnected(c *zmtp.Conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c == l.current {
		l.current = nil
		l.inbox.put(item{kind: connectionDown, err: err})
	}
}

// failed is told of each connection that did not come about.
func (l *listener) failed(err error) {
	l.inbox.put(item{kind: connectionFailed, err: err})
}
