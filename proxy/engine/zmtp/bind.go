package zmtp

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// listen binds and serves the publishers that connect, until ctx ends.
func (s *subscriber) listen(ctx context.Context) {
	l, err := s.Listen(ctx, s.network, s.address)
	if err != nil {
		s.failed(ctx, fmt.Errorf("bind %s: %w", s.Endpoint, err))
		return
	}
	var publishers sync.WaitGroup
	defer publishers.Wait()
	unhook := context.AfterFunc(ctx, func() { l.Close() })
	defer unhook()
	defer l.Close()
	s.accept(ctx, l, &publishers)
}

// accept starts a goroutine for each publisher. Beyond maxPublishers a connection
// is closed at once: left in the backlog its publisher would believe itself heard.
func (s *subscriber) accept(ctx context.Context, l net.Listener, publishers *sync.WaitGroup) {
	room := make(chan struct{}, maxPublishers)
	for {
		nc, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				nc.Close()
			}
			return
		}
		if err != nil { // as where no file descriptor is left: those connected stay
			s.failed(ctx, fmt.Errorf("accept at %s: %w", s.Endpoint, err))
			sleep(ctx, maxBackoff)
			continue
		}
		select {
		case room <- struct{}{}:
			publishers.Go(func() {
				defer func() { <-room }()
				s.admit(ctx, nc)
			})
		default:
			nc.Close()
			s.failed(ctx, fmt.Errorf("publisher at %s turned away: %d are connected, want at most that", s.Endpoint, maxPublishers))
		}
	}
}

// admit serves one publisher to its end.
func (s *subscriber) admit(ctx context.Context, nc net.Conn) {
	c, err := open(ctx, nc, s.Config, "SUB")
	if err != nil {
		s.failed(ctx, fmt.Errorf("handshake with a publisher at %s: %w", s.Endpoint, err))
		return
	}
	if err := s.subscribe(c); err != nil {
		s.failed(ctx, err)
		return
	}
	s.serve(c)
}
