package publish

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"kvca/proxy/engine/zmtp"
)

// Config describes an engine's event sockets. A zero value of a field means its
// default.
type Config struct {
	// Endpoint is the PUB's. By vLLM's rule it is bound where it holds * or ::, or
	// is ipc://; any other is connected to. Port 0 or * takes a free one.
	Endpoint string

	// Bind binds the PUB whatever the endpoint looks like.
	Bind bool

	// Replay is the ROUTER's endpoint, which is always bound. Default: no replay.
	Replay string

	// Topic goes out with each batch. Default: empty.
	Topic string

	// Buffer is how many batches can be replayed. Default 10,000.
	Buffer int

	// Queue is how many batches may wait for one subscriber. Default 100,000.
	Queue int

	// OldReplay answers replays without the topic, as vLLM did until v0.25 and
	// SGLang does.
	OldReplay bool

	// Dial and Listen make the connections. Default: TCP and Unix sockets. Tests in
	// memory put theirs here.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

const (
	defaultBuffer = 10_000
	defaultQueue  = 100_000
)

func (c Config) withDefaults() Config {
	if c.Buffer == 0 {
		c.Buffer = defaultBuffer
	}
	if c.Queue == 0 {
		c.Queue = defaultQueue
	}
	if c.Listen == nil {
		c.Listen = zmtp.Listen
	}
	return c
}

// binds says whether the PUB is bound.
func (c Config) binds() bool {
	return c.Bind || strings.Contains(c.Endpoint, "*") || strings.Contains(c.Endpoint, "::") ||
		strings.HasPrefix(c.Endpoint, "ipc://")
}

// Validate reports every fault of the configuration at once.
func (c Config) Validate() error {
	var faults []error
	_, _, err := zmtp.Address(c.Endpoint, c.binds())
	faults = append(faults, err)
	if c.Replay != "" {
		if _, _, err := zmtp.Address(c.Replay, true); err != nil {
			faults = append(faults, fmt.Errorf("replay: %w", err))
		}
	}
	if c.Buffer < 0 || c.Queue < 0 {
		faults = append(faults, fmt.Errorf("buffer, queue: %d, %d: want 1 or more, or 0 for the default", c.Buffer, c.Queue))
	}
	return errors.Join(faults...)
}

// wire is the configuration of one connection. vLLM's sockets send no heartbeats.
func (c Config) wire() zmtp.Config {
	return zmtp.Config{Endpoint: c.Endpoint, Heartbeat: -1, Dial: c.Dial}
}
