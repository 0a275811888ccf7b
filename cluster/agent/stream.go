package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
)

const (
	// linger is how long changes gather.
	linger = 3 * time.Millisecond
	// window is how much of a source may be under way, and windowParts in how many
	// parts.
	window      = 256 << 10
	windowParts = 256
	// ackTimeout ends a link whose node acknowledges nothing.
	ackTimeout = 10 * time.Second
)

// stream is one link with a node. It is the link's receiver.
type stream struct {
	a    *Agent
	addr string
	peer *link.Peer
	end  context.CancelFunc
	done chan struct{}

	mu  sync.Mutex
	out map[*Mirror]*flight
}

// flight is what of a source is under way.
type flight struct {
	epoch  uint64
	parts  []sent
	bytes  int
	begun  bool // the node wants it
	renew  bool // from the beginning
	moving time.Time
}

type sent struct {
	seq   uint64
	bytes int
}

// Up implements link.Receiver: all sources are offered.
func (s *stream) Up(p *link.Peer) {
	s.peer, s.out = p, make(map[*Mirror]*flight)
	for _, m := range s.a.mirrors {
		s.out[m] = &flight{}
		m.forgetLink()
	}
	s.a.linked(p.Name(), s.addr)
	var ctx context.Context
	ctx, s.end = context.WithCancel(context.Background())
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.send(ctx)
	}()
	s.a.wake()
}

// Down implements link.Receiver.
func (s *stream) Down(*link.Peer, error) {
	s.end()
	<-s.done
	for _, m := range s.a.mirrors {
		m.detach()
	}
}

// Frame implements link.Receiver: what the node wants, and has applied.
func (s *stream) Frame(p *link.Peer, kind byte, body []byte) {
	r := wire.NewReader(body)
	switch kind {
	case wire.KVWant:
		id, want := r.Want()
		s.wanted(id, want, &r)
	case wire.KVAck:
		id, epoch, seq := r.KVAck()
		s.acked(id, epoch, seq, &r)
	default:
		return // a later version's
	}
	if r.Bad() {
		p.Close(errors.New("a frame of the node can't be read"))
	}
	s.a.wake()
}

func (s *stream) wanted(id wire.SourceID, want bool, r *wire.Reader) {
	m := s.a.byID[id]
	if m == nil || r.Bad() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out[m].begun, s.out[m].renew = want, true
}

func (s *stream) acked(id wire.SourceID, epoch, seq uint64, r *wire.Reader) {
	m := s.a.byID[id]
	if m == nil || r.Bad() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.out[m]
	if f.epoch != epoch {
		return
	}
	n := 0
	for n < len(f.parts) && f.parts[n].seq <= seq {
		f.bytes -= f.parts[n].bytes
		n++
	}
	f.parts = append(f.parts[:0], f.parts[n:]...)
	f.moving = time.Now()
}

// send tells the node what is new, until ctx ends.
func (s *stream) send(ctx context.Context) {
	pause := time.NewTimer(time.Hour)
	pause.Stop()
	defer pause.Stop()
	wait := func(d time.Duration, signal <-chan struct{}) bool {
		pause.Reset(d)
		select {
		case <-ctx.Done():
			return false
		case <-signal:
		case <-pause.C:
		}
		return true
	}
	for wait(ackTimeout/4, s.a.stir) && wait(linger, nil) {
		s.peer.Hold()
		for _, m := range s.a.mirrors {
			if err := s.tell(m); err != nil {
				s.peer.Close(err)
			}
		}
		s.peer.Flush()
	}
}

var (
	errBehind = errors.New("the node is too far behind")
	errSilent = errors.New("the node acknowledges nothing")
)

// tell tells the node what is new of one source, as far as the window allows.
func (s *stream) tell(m *Mirror) error {
	if o, due := m.offer(); due && !s.peer.Send(link.Deltas, wire.AgentOffer, wire.AppendAgentOffer(nil, m.backend, &o)) {
		return errBehind
	}
	s.turn(m)
	for s.room(m) {
		part, events, ok := m.take(nil)
		if !ok {
			return nil
		}
		head := wire.AppendPart(nil, &part)
		if !s.peer.Send(link.Deltas, wire.AgentPart, head, events) {
			return errBehind
		}
		s.note(m, part.Seq, len(head)+len(events))
	}
	return s.stuck(m)
}

// turn begins or ends telling, as the node wants it.
func (s *stream) turn(m *Mirror) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.out[m]
	if !f.renew {
		return
	}
	f.renew = false
	if !f.begun {
		m.detach()
		return
	}
	f.epoch, f.parts, f.bytes, f.moving = s.a.epochs.Add(1), nil, 0, time.Now()
	m.begin(f.epoch)
}

func (s *stream) room(m *Mirror) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.out[m]
	return f.begun && !f.renew && f.bytes < window && len(f.parts) < windowParts
}

func (s *stream) note(m *Mirror, seq uint64, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.out[m]
	if len(f.parts) == 0 {
		f.moving = time.Now()
	}
	f.parts = append(f.parts, sent{seq, bytes})
	f.bytes += bytes
}

// stuck is an error where nothing of what is under way gets on.
func (s *stream) stuck(m *Mirror) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.out[m]; len(f.parts) > 0 && time.Since(f.moving) > ackTimeout {
		return errSilent
	}
	return nil
}
