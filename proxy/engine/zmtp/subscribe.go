package zmtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Handler gets what happens on a SUB socket. Calls for one connection come from
// one goroutine, in order: Connected, Messages, Disconnected. With Bind several
// connections call at the same time. While a call lasts nothing is read and no
// heartbeat is answered: none should wait.
type Handler interface {
	// Connected comes when hands were shaken and the subscription was sent, before
	// any message. What was published before is lost.
	Connected(c *Conn)
	// Message gets one message; the frames are valid during the call only.
	Message(c *Conn, frames [][]byte)
	// Disconnected comes once for each Connected, after the last message. To close
	// c in another call is the way to have it connected anew.
	Disconnected(c *Conn, err error)
}

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
	// A failure that repeats is logged this often.
	repeatEvery = time.Minute
)

// Subscribe runs a SUB socket until ctx ends, and returns ctx's error, or at once
// the faults of the configuration. All else is tried again for ever.
func Subscribe(ctx context.Context, c Config, h Handler) error {
	if err := c.Validate(); err != nil {
		return err
	}
	s := &subscriber{Config: c.withDefaults(), handler: h}
	s.network, s.address, _ = Address(c.Endpoint, c.Bind)
	attempt := s.connect
	if c.Bind {
		attempt = s.listen
	}
	s.forever(ctx, attempt)
	return ctx.Err()
}

// subscriber is one run of Subscribe.
type subscriber struct {
	Config
	handler          Handler
	network, address string

	mu        sync.Mutex
	lastError string
	loggedAt  time.Time
}

// forever repeats attempt until ctx ends, ever slower, but at first again after
// one that has lasted.
func (s *subscriber) forever(ctx context.Context, attempt func(context.Context)) {
	most := 2 * minBackoff
	for ctx.Err() == nil {
		start := time.Now()
		attempt(ctx)
		if time.Since(start) > maxBackoff+handshakeTimeout {
			most = 2 * minBackoff
		}
		sleep(ctx, minBackoff+rand.N(most-minBackoff+1))
		most = min(2*most, maxBackoff)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// connect makes one connection and serves it to its end.
func (s *subscriber) connect(ctx context.Context) {
	c, err := connect(ctx, s.Config, "SUB", s.network, s.address)
	if err == nil {
		err = s.subscribe(c)
	}
	if err != nil {
		s.failed(ctx, err)
		return
	}
	s.serve(c)
}

// subscribe sends the topics.
func (s *subscriber) subscribe(c *Conn) error {
	for _, topic := range s.Subscribe {
		if err := c.Send(append([]byte{1}, topic...)); err != nil {
			c.Close()
			return fmt.Errorf("subscribe at %s: %w", s.Endpoint, err)
		}
	}
	return nil
}

// serve hands over messages until the connection ends.
func (s *subscriber) serve(c *Conn) {
	s.connected(c)
	s.handler.Connected(c)
	var err error
	for {
		var frames [][]byte
		if frames, err = c.Receive(); err != nil {
			break
		}
		s.handler.Message(c, frames)
	}
	c.Close()
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("closed by the peer")
	case errors.Is(err, net.ErrClosed):
		err = errors.New("closed by us")
	}
	if c.ctx.Err() == nil {
		s.Logger.Warn("event socket disconnected", "endpoint", s.Endpoint, "peer", c.Peer(), "err", err)
	}
	s.handler.Disconnected(c, err)
}

func (s *subscriber) connected(c *Conn) {
	s.mu.Lock()
	s.lastError = ""
	s.mu.Unlock()
	s.Logger.Info("event socket connected", "endpoint", s.Endpoint, "peer", c.Peer())
}

// failed tells of an attempt that came to nothing; the log gets what is new.
func (s *subscriber) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.Failed(err)
	now := time.Now()
	s.mu.Lock()
	fresh := err.Error() != s.lastError && now.Sub(s.loggedAt) > maxBackoff
	fresh = fresh || now.Sub(s.loggedAt) > repeatEvery
	if fresh {
		s.lastError, s.loggedAt = err.Error(), now
	}
	s.mu.Unlock()
	if fresh {
		s.Logger.Warn("event socket can't be connected", "endpoint", s.Endpoint, "bind", s.Bind, "err", err)
	}
}
