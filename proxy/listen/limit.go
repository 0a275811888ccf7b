package listen

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Limit bounds the open connections of a listener to most, or only counts them
// where most is 0. Beyond it Accept waits until one is closed. Too low a bound
// keeps clients waiting without a word, too high a one lets idle ones take the
// process's file descriptors.
func Limit(l net.Listener, name string, most int, m *Metrics, log *slog.Logger) net.Listener {
	b := &bounded{Listener: l, name: name, log: log, open: m.open(name), closed: make(chan struct{})}
	if most > 0 {
		b.slots = make(chan struct{}, most)
	}
	if log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	return b
}

type bounded struct {
	net.Listener
	name   string
	log    *slog.Logger
	open   prometheus.Gauge
	slots  chan struct{} // one in it for each connection; nil for no bound
	closed chan struct{}
	once   sync.Once
	seldom seldom
}

func (b *bounded) Accept() (net.Conn, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	c, err := b.Listener.Accept()
	if err != nil {
		b.leave()
		return nil, err
	}
	b.open.Inc()
	return &counted{Conn: c, listener: b}, nil
}

func (b *bounded) enter() error {
	if b.slots == nil {
		return nil
	}
	select {
	case b.slots <- struct{}{}:
		return nil
	default:
	}
	if b.seldom.now(time.Now()) {
		b.log.Warn("all connections are taken, more have to wait", slog.String("listener", b.name), slog.Int("limit", cap(b.slots)))
	}
	select {
	case b.slots <- struct{}{}:
		return nil
	case <-b.closed:
		return &net.OpError{Op: "accept", Net: "tcp", Addr: b.Addr(), Err: net.ErrClosed}
	}
}

func (b *bounded) leave() {
	if b.slots != nil {
		<-b.slots
	}
}

// Close ends the listener, and an Accept that waits for a slot.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// counted is a connection that gives its slot back once.
type counted struct {
	net.Conn
	listener *bounded
	gone     atomic.Bool
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	if !c.gone.Swap(true) {
		c.listener.open.Dec()
		c.listener.leave()
	}
	return err
}

// CloseWrite ends this side's half, where the connection has halves.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

var errNoHalves = errors.New("the connection has no halves to close")

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errNoHalves
}

// seldom is true at most once a minute.
type seldom struct{ last atomic.Int64 }

func (s *seldom) now(t time.Time) bool {
	last := s.last.Load()
	return t.UnixNano()-last >= int64(time.Minute) && s.last.CompareAndSwap(last, t.UnixNano())
}
