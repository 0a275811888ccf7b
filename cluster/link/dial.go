package link

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
	// Who was refused may be let in after someone changed a setting: soon enough
	// at 2 to 5 s, and no burden.
	minRefusedBackoff = 2 * time.Second
	maxRefusedBackoff = 5 * time.Second
)

// dial keeps a link with a target until ctx ends. A link that is up outlives ctx:
// SetPeers and Run end it.
func (l *Links) dial(ctx context.Context, t Target) {
	backoff := minBackoff
	for ctx.Err() == nil {
		if old := l.linked(t); old != nil {
			select {
			case <-old.down:
			case <-ctx.Done():
				return
			}
			backoff = minBackoff
		}
		start := time.Now()
		err := l.dialOnce(ctx, t)
		if time.Since(start) > 2*(l.c.Lease+l.c.HandshakeTimeout) {
			backoff = minBackoff // it was up
		}
		pause := jitter(backoff/2, backoff)
		backoff = min(2*backoff, maxBackoff)
		if r := (*refusal)(nil); errors.As(err, &r) && !r.code.passing() {
			pause = jitter(minRefusedBackoff, maxRefusedBackoff)
		}
		sleep(ctx, pause)
	}
}

// linked returns the link that makes dialling needless.
func (l *Links) linked(t Target) *Peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.links[t.Name]
	if p == nil || (t.Boot != 0 && t.Boot != p.Boot()) {
		return nil
	}
	return p
}

// dialOnce makes one attempt and, where it succeeds, returns when the link is down.
func (l *Links) dialOnce(ctx context.Context, t Target) error {
	timeout, cancel := context.WithTimeout(ctx, l.c.HandshakeTimeout)
	conn, err := l.c.Dial(timeout, t.Addr)
	cancel()
	if err != nil {
		l.m.dialFailures.Inc()
		return fmt.Errorf("dial peer %s at %s: %w", t.Name, t.Addr, err)
	}
	p, err := l.shake(ctx, conn, t.Name)
	if err != nil {
		conn.Close()
		if ctx.Err() == nil {
			l.failed(t.Name, err)
		}
		return err
	}
	return l.serve(p)
}

func jitter(least, most time.Duration) time.Duration {
	return least + rand.N(most-least+1)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
