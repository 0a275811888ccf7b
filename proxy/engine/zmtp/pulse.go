package zmtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"time"
)

// maxMissed is how many intervals in a row may pass without a byte.
const maxMissed = 3

// pulse reads from the connection's socket and keeps the heartbeat meanwhile.
type pulse struct{ c *Conn }

// Read waits for bytes, one interval at a time. Intervals count only while we
// wait here: a handler that was slow must not make the peer look silent.
func (p pulse) Read(b []byte) (int, error) {
	c := p.c
	if !c.up || c.c.Heartbeat < 0 {
		return c.net.Read(b)
	}
	for missed := 0; ; {
		now := time.Now()
		if err := c.ping(now); err != nil {
			return 0, err
		}
		if err := c.net.SetReadDeadline(now.Add(c.c.Heartbeat)); err != nil {
			return 0, err
		}
		n, err := c.net.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		missed++
		if missed >= maxMissed && (c.answered || c.in.partial) {
			return 0, fmt.Errorf("peer was silent for %v", maxMissed*c.c.Heartbeat)
		}
	}
}

// ping sends a PING if one is due, also while messages come: the peer that was
// told a time to live counts what it hears from us.
func (c *Conn) ping(now time.Time) error {
	if now.Before(c.nextPing) {
		return nil
	}
	c.nextPing = now.Add(c.c.Heartbeat)
	// The time to live is in tenths of a second.
	ttl := min(maxMissed*c.c.Heartbeat/(100*time.Millisecond), math.MaxUint16)
	return c.sendCommand("PING", binary.BigEndian.AppendUint16(nil, max(uint16(ttl), 1)))
}
