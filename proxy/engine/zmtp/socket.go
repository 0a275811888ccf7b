package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// keepAlive finds out within 25 s that a host has vanished whose publisher sends
// no heartbeats.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// unsentTimeout is keepAlive's bound for when our own PINGs lie unacknowledged:
// then TCP sends no keep-alive and would retry for a quarter of an hour.
const unsentTimeout = 25 * time.Second

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	return d.DialContext(ctx, network, address)
}

// Listen binds a socket as ZeroMQ does: a Unix socket that a dead process has left
// behind is taken over.
func Listen(ctx context.Context, network, address string) (net.Listener, error) {
	c := net.ListenConfig{KeepAliveConfig: keepAlive}
	l, err := c.Listen(ctx, network, address)
	if network != "unix" || !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	probe, dialErr := dial(ctx, network, address)
	if dialErr == nil {
		probe.Close()
		return nil, err
	}
	info, statErr := os.Lstat(address)
	if !errors.Is(dialErr, syscall.ECONNREFUSED) || statErr != nil || info.Mode().Type() != os.ModeSocket {
		return nil, err
	}
	if removeErr := os.Remove(address); removeErr != nil {
		return nil, fmt.Errorf("take over a socket left behind: %w", removeErr)
	}
	return c.Listen(ctx, network, address)
}
