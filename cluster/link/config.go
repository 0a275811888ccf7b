package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Lane says how urgent a frame is. Lanes of one link overtake each other; within
// a lane frames arrive in the order in which they were sent.
type Lane uint8

const (
	// Urgent is for what a request waits for: reserve, its answer, release.
	Urgent Lane = iota
	// Deltas is for news of the block map and of loads.
	Deltas
	// Bulk is for digests and repair pages.
	Bulk

	lanes = 3
)

var laneNames = [lanes]string{"urgent", "deltas", "bulk"}

func (l Lane) String() string {
	if int(l) < lanes {
		return laneNames[l]
	}
	return fmt.Sprintf("lane %d", uint8(l))
}

// TLS gives the configurations of both ends of a connection. They are asked for
// at each handshake, so a rotated key takes effect with the next connection.
type TLS interface {
	Server() *tls.Config
	Client() *tls.Config
}

// Target is a node that is to be linked with.
type Target struct {
	Name string
	// Boot names the process that membership knows under this name; 0: any.
	Boot uint64
	Addr string
}

// Handler gets what happens on the links with other nodes.
type Handler interface {
	// Check may refuse a peer; the reason goes to the other side. It may be
	// called at any time, from any goroutine.
	Check(peer *Hello) error
	Receiver
}

// Receiver gets what comes over a link. Calls for one Peer come from one goroutine
// at a time and in order: Up, Frames, Down. None of them may block.
type Receiver interface {
	// Up comes before any frame of the peer, and after Down of an earlier link
	// to a node of the same name.
	Up(p *Peer)
	// Frame gets a frame; body is valid during the call only.
	Frame(p *Peer, kind byte, body []byte)
	// Down comes after the last frame, exactly once for each Up.
	Down(p *Peer, err error)
}

// Config says who we are, how connections are made, and what bounds hold.
type Config struct {
	// Self is what this node says of itself; asked for at each handshake. The
	// name must not change.
	Self func() Hello
	// Listener accepts the peers' connections. Run closes it.
	Listener net.Listener
	// Dial connects to a Target's Addr; default: TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// TLS protects both directions; nil: plain TCP, where whoever reaches the
	// port may speak as any node.
	TLS TLS

	Handler Handler
	// Agents gets what comes from agents, which are no peers, and Token tells the
	// token by which an agent of that name proves itself; both nil: none is let in.
	Agents Receiver
	Token  func(agent string) (token []byte, ok bool)

	Logger     *slog.Logger
	Registerer prometheus.Registerer

	// Heartbeat is after how much silence of ours a ping is sent; default 400 ms.
	// More than a third of Lease makes links fall for a lost packet or two.
	Heartbeat time.Duration
	// Lease is how long a peer may be silent before the link is closed and all
	// that it held is given back; default 1.5 s. Shorter ones mistake a pause of
	// a busy machine for death, longer ones keep a dead node's load booked.
	Lease time.Duration
	// WriteTimeout ends a link whose peer reads nothing; default 5 s.
	WriteTimeout time.Duration
	// HandshakeTimeout is from the connection to the last verdict; default 3 s.
	HandshakeTimeout time.Duration
	// Linger is how long an accepted link of a node that is not (yet) a target
	// is kept, since membership may lag behind it; default 5 s.
	Linger time.Duration
	// Bounds are the most bytes that may wait in each lane of a link; default
	// 4 MiB, 4 MiB, 1 MiB.
	Bounds [lanes]int
}

func (c *Config) setDefaults() {
	durations := []struct {
		v *time.Duration
		d time.Duration
	}{
		{&c.Heartbeat, 400 * time.Millisecond},
		{&c.Lease, 1500 * time.Millisecond},
		{&c.WriteTimeout, 5 * time.Second},
		{&c.HandshakeTimeout, 3 * time.Second},
		{&c.Linger, 5 * time.Second},
	}
	for _, d := range durations {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	for i, d := range [lanes]int{4 << 20, 4 << 20, 1 << 20} {
		if c.Bounds[i] == 0 {
			c.Bounds[i] = d
		}
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func (c *Config) validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Self == nil, "link: Self is missing")
	fault(c.Listener == nil, "link: Listener is missing")
	fault(c.Handler == nil, "link: Handler is missing")
	fault((c.Agents == nil) != (c.Token == nil), "link: Agents and Token must be given both, or neither")
	fault(c.Heartbeat < 0 || c.Heartbeat*2 > c.Lease, "link: Heartbeat %v must be at most half of Lease %v", c.Heartbeat, c.Lease)
	fault(c.WriteTimeout < 0, "link: WriteTimeout %v is negative", c.WriteTimeout)
	fault(c.HandshakeTimeout < 0, "link: HandshakeTimeout %v is negative", c.HandshakeTimeout)
	fault(c.Linger < 0, "link: Linger %v is negative", c.Linger)
	for i, b := range c.Bounds {
		fault(b < 0, "link: the bound of lane %v is negative: %d", Lane(i), b)
	}
	if c.Self != nil {
		h := c.Self()
		if err := h.validate(); err != nil {
			faults = append(faults, fmt.Errorf("link: Self: %w", err))
		}
	}
	return errors.Join(faults...)
}
