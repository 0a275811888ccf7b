package publish

import (
	"context"
	"net"
	"time"

	"kvca/proxy/engine/zmtp"
)

const (
	maxConns = 64
	// libzmq's own pause before it connects again.
	reconnectPause = 100 * time.Millisecond
	// A subscriber that doesn't read loses batches long before it loses the
	// connection, as with libzmq; who asks for a replay has zmtp's default.
	subscriberTimeout = time.Minute
)

func (p *Publisher) listen(ctx context.Context, endpoint string) (net.Listener, error) {
	network, address, err := zmtp.Address(endpoint, true)
	if err != nil {
		return nil, err
	}
	return p.c.Listen(ctx, network, address)
}

// accept serves one socket's connections until ctx ends.
func (p *Publisher) accept(ctx context.Context, l net.Listener, socketType string, serve func(context.Context, *zmtp.Conn)) {
	room := make(chan struct{}, maxConns)
	for {
		nc, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			sleep(ctx, reconnectPause)
			continue
		}
		select {
		case room <- struct{}{}:
			p.running.Go(func() {
				defer func() { <-room }()
				p.admit(nc, socketType, serve)
			})
		default:
			nc.Close()
		}
	}
}

func (p *Publisher) admit(nc net.Conn, socketType string, serve func(context.Context, *zmtp.Conn)) {
	c := p.c.wire()
	if socketType == "PUB" {
		c.WriteTimeout = subscriberTimeout
	}
	life := p.currentLife()
	conn, err := zmtp.Accept(life, nc, c, socketType)
	if err != nil {
		return
	}
	defer conn.Close()
	serve(life, conn)
}

// connect keeps the PUB connected to its one subscriber until ctx ends.
func (p *Publisher) connect(ctx context.Context) {
	c := p.c.wire()
	c.WriteTimeout = subscriberTimeout
	for ctx.Err() == nil {
		life := p.currentLife()
		if conn, err := zmtp.Dial(life, c, "PUB"); err == nil {
			p.serveSubscriber(life, conn)
			conn.Close()
		}
		sleep(ctx, reconnectPause)
	}
}

func (p *Publisher) currentLife() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
