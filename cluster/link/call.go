package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// CallConfig is how an agent reaches a node.
type CallConfig struct {
	// Addr is the node's link address, HOST:PORT.
	Addr string
	// Name and Token are the agent's credential; the token is never sent.
	Name  string
	Token []byte
	// MinProtocol and MaxProtocol are the versions that the agent speaks.
	MinProtocol, MaxProtocol uint8
	// Dial connects to Addr; default: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// TLS protects the connection; nil: plain TCP, where others can read what is
	// streamed.
	TLS TLS
	// Receiver gets what the node says.
	Receiver Receiver
	Logger   *slog.Logger
}

// Call connects to a node as an agent and keeps the link until it ends or ctx
// does. It returns why, and when nothing of it is left.
func Call(ctx context.Context, c CallConfig) error {
	l, err := c.links()
	if err != nil {
		return err
	}
	timeout, cancel := context.WithTimeout(ctx, l.c.HandshakeTimeout)
	conn, err := l.c.Dial(timeout, c.Addr)
	cancel()
	if err != nil {
		return fmt.Errorf("dial node at %s: %w", c.Addr, err)
	}
	h := &handshake{l: l, conn: conn, outlet: newOutlet(conn), dialled: true, self: l.c.Self()}
	p, err := h.perform(ctx, func() (*Peer, error) { return h.callNode(c.Token) })
	if err != nil {
		conn.Close()
		return fmt.Errorf("call node at %s: %w", c.Addr, err)
	}
	p.m = l.m.nobody
	defer close(p.down)
	defer context.AfterFunc(ctx, func() { p.end(endedf(byShutdown, "agent %s is stopping", c.Name)) })()
	p.live()
	return fmt.Errorf("link with node %s at %s ended: %w", p.Name(), c.Addr, p.ending)
}

// links are what a call needs of Links: bounds, times, and nobody's metrics.
func (c *CallConfig) links() (*Links, error) {
	if c.Receiver == nil {
		return nil, errors.New("link: Receiver is missing")
	}
	self := Hello{
		Node: c.Name, Boot: uint64(time.Now().UnixNano()), MinProtocol: c.MinProtocol, MaxProtocol: c.MaxProtocol,
		Role: AgentRole, nonce: newNonce(),
	}
	if err := self.validate(); err != nil {
		return nil, fmt.Errorf("link: agent %q: %w", c.Name, err)
	}
	l := &Links{c: Config{
		Self: func() Hello { return self }, Dial: c.Dial, TLS: c.TLS, Handler: calling{c.Receiver}, Logger: c.Logger,
	}, name: c.Name, m: newMetrics(nil)}
	l.c.setDefaults()
	l.said = newOnceLog(l.c.Logger)
	return l, nil
}

// calling is an agent's receiver as a handler: whom it calls is checked by proof.
type calling struct{ Receiver }

// Check implements Handler.
func (calling) Check(*Hello) error { return nil }

// Refused is whether a call ended since the node does not want this agent, so that
// another try at once is of no use.
func Refused(err error) bool {
	r := (*refusal)(nil)
	return errors.As(err, &r) && !r.code.passing()
}
