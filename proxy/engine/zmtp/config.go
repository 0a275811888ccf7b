package zmtp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Config describes one socket. A zero value of a field means its default.
type Config struct {
	// Endpoint is tcp://host:port or ipc:///path. With Bind it is listened on, and
	// the host may be *; else it is connected to.
	Endpoint string

	// Bind lets publishers connect to us: what an engine needs whose own endpoint
	// names a host, since such an engine connects.
	Bind bool

	// Subscribe holds the prefixes of topics that are wanted. Default: one empty
	// one, which is everything.
	Subscribe []string

	// MaxFrame bounds one frame, in bytes. Default 64 MiB. A frame beyond it ends
	// the connection: too small, and a full batch can never be received.
	MaxFrame int

	// MaxMessage bounds the frames of one message together, in bytes. Default
	// 128 MiB.
	MaxMessage int

	// Heartbeat is the interval of our PINGs. Default 5 s; negative: none. A peer
	// that has ever answered one is dropped after three intervals of silence, and
	// is asked to do the same with us. Shorter takes a paused peer for a dead one.
	Heartbeat time.Duration

	// WriteTimeout bounds one Send. Default 5 s. A peer that doesn't read for as
	// long is dropped.
	WriteTimeout time.Duration

	// Failed is called with each attempt that ended before Connected, from the
	// goroutine that made it. Default: none.
	Failed func(error)

	// Dial connects. Default: TCP with keep-alive, or a Unix socket. Tests put
	// theirs here.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Listen binds. Default: as Dial.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)

	// Logger gets one line per event that an operator would act on. Default: none.
	Logger *slog.Logger
}

const (
	defaultMaxFrame   = 64 << 20
	defaultMaxMessage = 128 << 20
	defaultHeartbeat  = 5 * time.Second
	minHeartbeat      = 10 * time.Millisecond

	connectTimeout   = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	writeTimeout     = 5 * time.Second

	maxTopics     = 64
	maxPublishers = 16
)

func (c Config) withDefaults() Config {
	if len(c.Subscribe) == 0 {
		c.Subscribe = []string{""}
	}
	if c.MaxFrame == 0 {
		c.MaxFrame = defaultMaxFrame
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = max(defaultMaxMessage, c.MaxFrame)
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = defaultHeartbeat
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = writeTimeout
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
	if c.Dial == nil {
		c.Dial = dial
	}
	if c.Listen == nil {
		c.Listen = Listen
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports every fault of the configuration at once.
func (c Config) Validate() error {
	c = c.withDefaults()
	_, _, err := Address(c.Endpoint, c.Bind)
	return errors.Join(err, c.validateRest())
}

// validateRest checks all but the endpoint, which an accepted connection has no
// use for.
func (c Config) validateRest() error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.MaxFrame < 1 {
		add("max frame: %d bytes: want 1 or more, or 0 for the default", c.MaxFrame)
	}
	if c.MaxMessage < c.MaxFrame {
		add("max message: %d bytes is less than one frame: want %d or more, or 0 for the default", c.MaxMessage, c.MaxFrame)
	}
	if c.Heartbeat >= 0 && c.Heartbeat < minHeartbeat {
		add("heartbeat: %v is too short: want %v or more, negative for none, or 0 for the default", c.Heartbeat, minHeartbeat)
	}
	if c.WriteTimeout < 0 {
		add("write timeout: %v: want more than 0, or 0 for the default", c.WriteTimeout)
	}
	if len(c.Subscribe) > maxTopics {
		add("subscribe: %d topics: want at most %d", len(c.Subscribe), maxTopics)
	}
	for _, topic := range c.Subscribe {
		if len(topic) >= maxCommand {
			add("subscribe: a topic of %d bytes: want less than %d", len(topic), maxCommand)
		}
	}
	return errors.Join(faults...)
}
