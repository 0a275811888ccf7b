package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Held are clients whose answers have begun and that neither read on nor leave.
type Held struct{ conns []*conn }

// Hold sends requests that are answered by streams and returns when every answer
// has begun. Close lets the clients leave.
func Hold(ctx context.Context, addr string, bodies [][]byte, timeout time.Duration) (*Held, error) {
	h := &Held{}
	faults := make([]error, len(bodies))
	var running sync.WaitGroup
	for i, body := range bodies {
		c := newConn(addr, timeout)
		h.conns = append(h.conns, c)
		running.Go(func() { faults[i] = c.begin(ctx, Request(body)) })
	}
	running.Wait()
	if err := errors.Join(faults...); err != nil {
		h.Close()
		return nil, fmt.Errorf("hold %d streams at %s: %w", len(bodies), addr, err)
	}
	return h, nil
}

// begin sends a request and reads the first byte of its answer. The connection
// then has no deadline any more.
func (c *conn) begin(ctx context.Context, request []byte) error {
	if err := errors.Join(ctx.Err(), c.open()); err != nil {
		return err
	}
	if _, err := c.c.Write(request); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		return fmt.Errorf("read response: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("read first byte: %w", err)
	}
	return c.c.SetDeadline(time.Time{})
}

// Len is how many clients there are.
func (h *Held) Len() int { return len(h.conns) }

// Close cuts all connections.
func (h *Held) Close() {
	for _, c := range h.conns {
		c.close()
	}
}
