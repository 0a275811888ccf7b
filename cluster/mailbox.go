package cluster

import "sync"

// Bounds of what waits to be applied and to be answered, a peer. What is beyond
// is dropped, counted, and found missing by the next comparison.
const (
	inboxBytes    = 4 << 20
	questionBytes = 1 << 18
)

// mailbox hands frames from the reader of a link to a worker, in order.
type mailbox struct {
	mu     sync.Mutex
	frames []mail
	bytes  int
	bound  int
	busy   bool // the worker has a frame in hand
	wake   chan struct{}
}

type mail struct {
	kind byte
	body []byte
}

func (m *mailbox) init(bound int) { m.bound, m.wake = bound, make(chan struct{}, 1) }

// put takes a copy of the frame; false where the bound is reached.
func (m *mailbox) put(kind byte, body []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes+len(body) > m.bound {
		return false
	}
	m.frames = append(m.frames, mail{kind, append([]byte(nil), body...)})
	m.bytes += len(body)
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return true
}

// idle is whether all frames so far have been worked off.
func (m *mailbox) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.busy && len(m.frames) == 0
}

// take returns the next frame; to come back for one is to have done with the last.
func (m *mailbox) take() (mail, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy = len(m.frames) > 0; !m.busy {
		return mail{}, false
	}
	f := m.frames[0]
	m.frames[0] = mail{}
	if m.frames = m.frames[1:]; len(m.frames) == 0 {
		m.frames = nil
	}
	m.bytes -= len(f.body)
	return f, true
}

// empty drops what waits.
func (m *mailbox) empty() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frames, m.bytes = nil, 0
}
