package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Publisher is a simulated engine's event sockets. Its methods are safe from any
// goroutine.
type Publisher struct {
	c           Config
	pub, router net.Listener // nil where there is none
	stop        context.CancelFunc
	running     sync.WaitGroup
	replaying   chan struct{} // holds one token while a replay is sent

	mu          sync.Mutex
	life        context.Context    // of the connections: until Restart or Close
	cut         context.CancelFunc // ends life
	next        uint64
	ring        ring
	faults      faults
	held        *batch // the first of two that are to be swapped
	subscribers map[*subscriber]struct{}
	lost        uint64 // batches that didn't fit a subscriber's queue
}

// batch is one numbered payload.
type batch struct {
	seq     uint64
	payload []byte
}

// New opens the sockets. Where the PUB connects, it does so until Close, whether
// or not anyone listens.
func New(c Config) (*Publisher, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	ctx, stop := context.WithCancel(context.Background())
	p := &Publisher{
		c: c, stop: stop,
		replaying:   make(chan struct{}, 1),
		ring:        ring{bound: c.Buffer},
		faults:      faults{},
		subscribers: map[*subscriber]struct{}{},
	}
	p.life, p.cut = context.WithCancel(context.Background())
	if err := p.open(ctx); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// open binds what is to be bound and starts the sockets.
func (p *Publisher) open(ctx context.Context) error {
	var err error
	if p.c.binds() {
		if p.pub, err = p.listen(ctx, p.c.Endpoint); err != nil {
			return fmt.Errorf("bind the PUB: %w", err)
		}
	}
	if p.c.Replay != "" {
		if p.router, err = p.listen(ctx, p.c.Replay); err != nil {
			return fmt.Errorf("bind the ROUTER: %w", err)
		}
	}
	if p.pub != nil {
		p.running.Go(func() { p.accept(ctx, p.pub, "PUB", p.serveSubscriber) })
	} else {
		p.running.Go(func() { p.connect(ctx) })
	}
	if p.router != nil {
		p.running.Go(func() { p.accept(ctx, p.router, "ROUTER", p.serveReplays) })
	}
	return nil
}

// Publish numbers a batch and queues it for every subscriber. The payload is
// copied.
func (p *Publisher) Publish(payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := batch{seq: p.next, payload: bytes.Clone(payload)}
	p.next++
	if first := p.held; first != nil {
		p.held = nil
		p.ring.push(b)
		p.send(b)
		p.send(*first)
		return
	}
	fault := p.faults.take(Lost, Hole, Twice, Swapped)
	if fault != Hole {
		p.ring.push(b)
	}
	switch fault {
	case Lost, Hole:
	case Swapped:
		p.held = &b
	case Twice:
		p.send(b)
		p.send(b)
	default:
		p.send(b)
	}
}

// send queues a batch for all whose topics match. mu is held.
func (p *Publisher) send(b batch) {
	for s := range p.subscribers {
		if !s.offer(b, p.c.Topic, p.c.Queue) {
			p.lost++
		}
	}
}

// Fault arms a fault for the next n batches, pairs of batches or replays, as the
// kind says. It adds to what is armed already.
func (p *Publisher) Fault(kind Fault, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults.arm(kind, n)
}

// Restart makes this a new engine at the same address: connections are cut,
// numbers begin at 0, nothing can be replayed, no fault is armed.
func (p *Publisher) Restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
	p.life, p.cut = context.WithCancel(context.Background())
	p.next, p.ring, p.held, p.faults = 0, ring{bound: p.c.Buffer}, nil, faults{}
	p.subscribers = map[*subscriber]struct{}{}
}

// Subscribers is how many connections have subscribed to the topic.
func (p *Publisher) Subscribers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for s := range p.subscribers {
		if s.wants(p.c.Topic) {
			n++
		}
	}
	return n
}

// Dropped is how many batches did not fit a subscriber's queue, in all.
func (p *Publisher) Dropped() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// Endpoint is where subscribers connect to; where the PUB connects, it is the
// configured one.
func (p *Publisher) Endpoint() string {
	if p.pub == nil {
		return p.c.Endpoint
	}
	return endpointOf(p.pub)
}

// ReplayEndpoint is where replays are asked for; empty where there are none.
func (p *Publisher) ReplayEndpoint() string {
	if p.router == nil {
		return ""
	}
	return endpointOf(p.router)
}

// endpointOf names a listener so that it can be connected to from this host.
func endpointOf(l net.Listener) string {
	switch addr := l.Addr().(type) {
	case *net.UnixAddr:
		return "ipc://" + addr.Name
	case *net.TCPAddr:
		if addr.IP.IsUnspecified() {
			return fmt.Sprintf("tcp://127.0.0.1:%d", addr.Port)
		}
	}
	return "tcp://" + l.Addr().String()
}

// Close ends the sockets; what is queued is lost. It may be called again.
func (p *Publisher) Close() error {
	p.stop()
	p.mu.Lock()
	p.cut()
	p.mu.Unlock()
	var errs []error
	for _, l := range []net.Listener{p.pub, p.router} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	p.running.Wait()
	return errors.Join(errs...)
}
