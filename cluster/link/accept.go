package link

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// Connections whose hello has not come yet: so many in all, and so many of
	// one host. Beyond either a connection is closed unheard.
	maxPending     = 64
	maxPendingHost = 16
)

// accept takes connections until the listener is closed.
func (l *Links) accept(ctx context.Context) {
	waiting := &lobby{hosts: map[string]int{}}
	pause := 5 * time.Millisecond
	for {
		conn, err := l.c.Listener.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if conn != nil {
				conn.Close()
			}
			return
		}
		if err != nil { // out of file descriptors, most likely
			l.said.warn("accept", "", "accept peer connection", err)
			sleep(ctx, pause)
			pause = min(2*pause, time.Second)
			continue
		}
		pause = 5 * time.Millisecond
		host := remoteHost(conn)
		if !waiting.enter(host) {
			l.m.failures.WithLabelValues("crowded").Inc()
			l.said.warn("crowded", host, "peer connection closed unheard", errCrowded)
			conn.Close()
			continue
		}
		l.wg.Go(func() { l.receive(ctx, conn, host, waiting) })
	}
}

var errCrowded = errors.New("too many connections wait for their handshake")

// receive takes one accepted connection through its handshake and serves it.
func (l *Links) receive(ctx context.Context, conn net.Conn, host string, waiting *lobby) {
	p, err := l.shake(ctx, conn, "")
	waiting.leave(host)
	if err != nil {
		conn.Close()
		if ctx.Err() == nil {
			l.failed(host, err)
		}
		return
	}
	if p.hello.Role == AgentRole {
		l.serveAgent(p)
		return
	}
	l.serve(p) //nolint:errcheck // logged there; who dialled acts on it
}

// failed counts and logs a handshake that came to nothing. who is the target's
// name or the remote host.
func (l *Links) failed(who string, err error) {
	var r *refusal
	if !errors.As(err, &r) {
		l.m.failures.WithLabelValues(failure(err)).Inc()
		l.said.warn("handshake "+failure(err), who, "peer handshake failed", err)
		return
	}
	by := "us"
	if r.theirs {
		by = "them"
	}
	l.m.refused.WithLabelValues(r.code.String(), by).Inc()
	if !r.code.passing() {
		l.said.warn(r.Error(), r.peer, "peer refused", err, slog.String("by", by), slog.String("reason", r.code.String()))
	}
}

// A lobby counts who waits for the end of a handshake.
type lobby struct {
	mu    sync.Mutex
	all   int
	hosts map[string]int
}

func (w *lobby) enter(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= maxPending || w.hosts[host] >= maxPendingHost {
		return false
	}
	w.all++
	w.hosts[host]++
	return true
}

func (w *lobby) leave(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.hosts[host]--; w.hosts[host] == 0 {
		delete(w.hosts, host)
	}
}

func remoteHost(c net.Conn) string {
	addr := c.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}
