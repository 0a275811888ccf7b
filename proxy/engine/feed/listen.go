package feed

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"kvca/proxy/engine/zmtp"
)

// listener is the zmtp.Handler: it copies what comes into the inbox. Its calls
// come from several goroutines where the endpoint is bound.
type listener struct {
	inbox   *inbox
	foreign atomic.Uint64 // messages of others than the newest connection, as long as it is that

	mu   sync.Mutex   // held while the inbox gets what depends on the newest
	open []*zmtp.Conn // the newest, last, alone speaks
}

func (l *listener) speaks(c *zmtp.Conn) bool {
	return len(l.open) > 0 && l.open[len(l.open)-1] == c
}

// Connected makes c the one that speaks: an engine that restarts may be back
// before its old connection is known to be dead.
func (l *listener) Connected(c *zmtp.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
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
	case !l.speaks(c):
		l.foreign.Add(1)
	case err != nil:
		l.inbox.putMalformed(err)
	default:
		l.inbox.putLive(b)
	}
}

// Disconnected lets the next newest speak, if there is one: that is a connection
// to another process than the one heard until now.
func (l *listener) Disconnected(c *zmtp.Conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spoke := l.speaks(c)
	l.open = slices.DeleteFunc(l.open, func(o *zmtp.Conn) bool { return o == c })
	if !spoke {
		return
	}
	l.foreign.Store(0)
	l.inbox.put(item{kind: connectionDown, err: err})
	if len(l.open) > 0 {
		l.inbox.put(item{kind: otherEngine})
		l.inbox.put(item{kind: connectionUp})
	}
}

// failed is told of each connection that did not come about.
func (l *listener) failed(err error) {
	l.inbox.put(item{kind: connectionFailed, err: err})
}
